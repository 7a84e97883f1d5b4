//! The files that are extracted from an archive, and the files that are not.

use super::*;

#[tokio::test]
async fn only_the_wanted_members_leave_an_archive() {
    let bench = Bench::plain().await;
    let bytes = etcd_archive();
    bench.server.put(ETCD, &bytes);
    let artifact = bench.artifact(Component::Etcd, "3.99.0", &bytes);
    let files = bench.fetch(&artifact).await.unwrap();
    let names: Vec<_> = files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["etcd", "etcdctl", "etcdutl"]);
    assert_eq!(files[0].sha256, sum_of(&program(300_000)));
    assert_eq!(fs::read(&files[1].path).unwrap(), b"ctl");
    assert_eq!(bench.files(), ["etcd", "etcd-v3.99.0-linux-amd64.tar.gz", "etcdctl", "etcdutl"]);
    assert_eq!(bench.store.cached(&artifact).await, Some(files));
}

#[tokio::test]
async fn only_executables_at_the_top_leave_the_archive_of_network_plugins() {
    let bench = Bench::plain().await;
    let bytes = archive(&[
        ("./bridge", 0o755, b"bridge"),
        ("./LICENSE", 0o644, b"text"),
        ("./link", 0o777, b""),
        ("./sub/evil", 0o755, b"evil"),
        ("../evil", 0o755, b"evil"),
        ("/evil", 0o755, b"evil"),
        ("loopback", 0o755, b"loopback"),
    ]);
    bench.server.put(CNI, &bytes);
    let files = bench.fetch(&bench.artifact(Component::CniPlugins, "1.99.0", &bytes)).await.unwrap();
    let names: Vec<_> = files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["bridge", "loopback"]);
    assert_eq!(bench.files(), ["bridge", "cni-plugins-linux-amd64-v1.99.0.tgz", "loopback"]);
}

#[tokio::test]
async fn an_archive_that_is_not_as_expected_is_refused() {
    let dir = "etcd-v3.99.0-linux-amd64";
    let (etcd, ctl, utl) = (format!("{dir}/etcd"), format!("{dir}/etcdctl"), format!("{dir}/etcdutl"));
    for (bytes, reason) in [
        (
            archive(&[(&etcd, 0o755, b"e"), (&ctl, 0o755, b"c")]),
            "etcd-v3.99.0-linux-amd64/etcdutl is not in it",
        ),
        (archive(&[(&etcd, 0o755, b""), (&ctl, 0o755, b"c"), (&utl, 0o755, b"u")]), "etcd is not a file"),
        (archive(&[(&etcd, 0o755, b"e"), (&etcd, 0o755, b"e")]), "etcd is there twice"),
        (b"<html>no archive</html>".to_vec(), "invalid gzip header"),
        (etcd_archive()[..1000].to_vec(), "etcd: incomplete deflate stream"),
    ] {
        let bench = Bench::plain().await;
        bench.server.put(ETCD, &bytes);
        let artifact = bench.artifact(Component::Etcd, "3.99.0", &bytes);
        let error = bench.fetch(&artifact).await.unwrap_err().to_string();
        assert!(error.contains(reason), "{error} instead of {reason}");
        assert_eq!(bench.store.cached(&artifact).await, None);
    }
}
