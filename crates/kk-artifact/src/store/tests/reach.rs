//! Checks before the first download.

use super::*;

#[tokio::test]
async fn all_that_cannot_be_downloaded_is_known_beforehand() {
    let bench = Bench::plain().await;
    bench.server.put(KUBEADM, &program(5_000));
    bench.server.put(ETCD, &etcd_archive());
    let kubeadm = bench.kubeadm(&program(5_000));
    let etcd = bench.artifact(Component::Etcd, "3.99.0", &etcd_archive());
    let absent = ["9.9.9", "9.9.8"].map(|version| bench.artifact(Component::Runc, version, b""));
    let [runc, old_runc] = &absent;

    let all = [kubeadm.clone(), runc.clone(), etcd.clone(), old_runc.clone()];
    let errors = bench.store.check_reachable(&all).await.unwrap_err();
    let told: Vec<_> = errors.iter().map(ToString::to_string).collect();
    let expected = [runc, old_runc].map(|runc| format!("{} does not exist (404)", runc.address));
    assert_eq!(told, expected);

    let size = 5_000 + etcd_archive().len() as u64;
    assert_eq!(bench.store.check_reachable(&[kubeadm.clone(), etcd.clone()]).await.unwrap(), size);
    assert!(bench.ranges().is_empty(), "only HEAD is asked");
    bench.fetch(&kubeadm).await.unwrap();
    assert_eq!(bench.store.check_reachable(&[kubeadm.clone(), etcd.clone()]).await.unwrap(), size - 5_000);

    for code in [StatusCode::METHOD_NOT_ALLOWED, StatusCode::NOT_IMPLEMENTED, StatusCode::FORBIDDEN] {
        bench.server.refuse_head(code);
        let asked = bench.ranges().len();
        assert_eq!(bench.store.check_reachable(std::slice::from_ref(&etcd)).await.unwrap(), 0, "{code}");
        assert_eq!(bench.ranges()[asked..], [Some("bytes=0-0".to_owned())], "{code}");
    }
}

#[tokio::test]
async fn a_server_that_is_down_is_told_once_for_all_its_files() {
    let bench = Bench::plain().await;
    let artifacts = [bench.kubeadm(b"x"), bench.artifact(Component::Etcd, "3.99.0", b"x")];
    let Bench { server, store, progress, dir: _dir, .. } = bench;
    let address = server.address;
    drop(server);
    // The port closes when the server's task has ended.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let errors = store.check_reachable(&artifacts).await.unwrap_err();
    let [error] = &errors[..] else { panic!("{errors:?}") };
    assert_eq!(
        error.to_string(),
        format!(
            "cannot reach {address}: Connection refused (os error 111); \
             kubeadm v1.99.0 for amd64, etcd v3.99.0 for amd64 cannot be downloaded"
        )
    );
    let error = store.fetch(&artifacts[0], &progress, &CancellationToken::new()).await.unwrap_err();
    assert!(error.to_string().contains("Connection refused"), "{error}");
    assert!(error.hint().unwrap().contains("HTTPS_PROXY"));
}

#[tokio::test]
async fn a_server_that_a_redirect_leads_to_is_named_when_it_fails() {
    let bench = Bench::plain().await;
    bench.server.put(KUBEADM, b"program");
    let artifact = bench.kubeadm(b"program");
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let other = Server::plain().await;
    other.put("/x", b"program");
    other.faults([Fault::Status(StatusCode::FORBIDDEN)]);
    for (host, redirects, reason) in
        [(closed, 3, "Connection refused (os error 111)"), (other.address, 1, "answers 403 Forbidden")]
    {
        bench.server.faults(vec![Fault::Redirect(format!("http://{host}/x?token=sentinel")); redirects]);
        let error = bench.fetch(&artifact).await.unwrap_err().to_string();
        assert!(error.ends_with(&format!("{reason}, after a redirect to {host}")), "{error}");
        assert!(!error.contains("sentinel"), "{error}");
    }
}
