//! TLS, published sums and passwords.

use super::*;

#[tokio::test]
async fn a_version_without_a_known_sum_is_verified_by_its_published_one() {
    let bench = Bench::new(Server::tls().await);
    bench.server.put(KUBEADM, b"program");
    let sum = format!("{KUBEADM}.sha256");
    let artifact = bench.catalogue().resolve(Component::Kubeadm, "1.99.0", Arch::Amd64).unwrap();
    assert!(matches!(artifact.checksum, Checksum::Published(_)));

    bench.server.put(&sum, b"<html>not here</html>");
    assert!(matches!(bench.fetch(&artifact).await, Err(Error::NotASum { .. })));
    bench.server.put(&sum, sum_of(b"other").as_bytes());
    assert!(matches!(bench.fetch(&artifact).await, Err(Error::WrongSum { .. })));
    bench.server.put(&sum, format!("{}  kubeadm\n", sum_of(b"program")).as_bytes());
    let files = bench.fetch(&artifact).await.unwrap();
    assert_eq!(files[0].sha256, sum_of(b"program"));

    drop(bench.server);
    assert_eq!(bench.store.cached(&artifact).await.as_ref(), Some(&files));
    fs::write(&files[0].path, b"changed").unwrap();
    assert_eq!(bench.store.cached(&artifact).await, None);
}

#[tokio::test]
async fn what_is_published_as_a_sum_is_not_read_without_end() {
    let bench = Bench::new(Server::tls().await);
    bench.server.put(&format!("{KUBEADM}.sha256"), &vec![b'f'; 200_000]);
    bench.server.faults([Fault::StopAfter(150_000)]);
    let artifact = bench.catalogue().resolve(Component::Kubeadm, "1.99.0", Arch::Amd64).unwrap();
    let answer = tokio::time::timeout(Duration::from_secs(5), bench.fetch(&artifact)).await;
    assert!(matches!(answer, Ok(Err(Error::NotASum { .. }))), "{answer:?}");
}

#[tokio::test]
async fn an_unknown_certificate_is_refused_at_once_with_the_way_out() {
    let bench = Bench::new(Server::tls().await);
    bench.server.put(KUBEADM, b"program");
    let artifact = bench.kubeadm(b"program");
    let strict = store(bench.dir.path(), "");
    let error = strict.fetch(&artifact, &bench.progress, &CancellationToken::new()).await.unwrap_err();
    assert!(error.to_string().contains("UnknownIssuer"), "{error}");
    assert!(error.hint().unwrap().contains("spec.download.caFile"));
    assert!(bench.news.is_empty(), "it was tried again");
    let errors = strict.check_reachable(&[artifact.clone(), artifact]).await.unwrap_err();
    assert!(matches!(&errors[..], [Error::Unreachable { files, .. }] if files.len() == 2), "{errors:?}");
}

#[tokio::test]
async fn a_redirect_from_tls_to_plain_http_is_refused() {
    let plain = Server::plain().await;
    plain.put(KUBEADM, b"program");
    let bench = Bench::new(Server::tls().await);
    bench.server.put(KUBEADM, b"program");
    bench.server.faults([Fault::Redirect(format!("{}{KUBEADM}", plain.base()))]);
    let error = bench.fetch(&bench.kubeadm(b"program")).await.unwrap_err().to_string();
    assert!(error.ends_with("it redirects from https to http"), "{error}");
    assert!(plain.requests().is_empty());
}

#[tokio::test]
async fn a_mirrors_password_is_sent_and_never_shown() {
    let bench = Bench::plain().await;
    let base = bench.server.base().replace("http://", "http://me:sentinel@");
    let own = format!("runc: {{amd64: {{9.9.9: {}}}}}", sum_of(b""));
    let catalogue = Catalogue::builtin().with_user("own.yaml", &own).unwrap().with_mirror(&base).unwrap();
    let artifact = catalogue.resolve(Component::Runc, "9.9.9", Arch::Amd64).unwrap();
    let error = bench.fetch(&artifact).await.unwrap_err();
    let errors = bench.store.check_reachable(std::slice::from_ref(&artifact)).await.unwrap_err();
    let shown = format!("{error} {error:?} {errors:?} {artifact:?} {catalogue:?}");
    assert!(!shown.contains("sentinel") && !shown.contains("me:"), "{shown}");
    assert_eq!(bench.server.requests()[0].authorization.as_deref(), Some("Basic bWU6c2VudGluZWw="));
}

#[test]
fn a_ca_file_that_is_none_is_refused_before_anything_is_downloaded() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("ca.pem");
    for (content, reason) in
        [(None, "No such file"), (Some("no certificate"), "it holds no certificate in PEM form")]
    {
        if let Some(content) = content {
            fs::write(&path, content).unwrap();
        }
        let settings = StoreSettings { ca_file: Some(path.clone()), ..StoreSettings::new(dir.path()) };
        let error = Store::new(settings).unwrap_err().to_string();
        assert!(error.contains("ca.pem") && error.contains(reason), "{error}");
    }
}

#[tokio::test]
async fn a_tls_connection_that_ends_early_is_told_in_plain_words() {
    let bench = Bench::new(Server::tls().await);
    bench.server.put(KUBEADM, &program(300_000));
    bench.server.faults([Fault::CutAfter(0), Fault::CutAfter(0), Fault::CutAfter(0)]);
    let error = bench.fetch(&bench.kubeadm(&program(300_000))).await.unwrap_err().to_string();
    assert!(error.ends_with("the connection ended early"), "{error}");
}
