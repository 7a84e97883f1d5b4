//! A mirror of small programs, so that the bytes of Kubernetes do not hide what is measured.

use std::{collections::BTreeMap, fs, path::Path, process::Command, sync::Arc};

use anyhow::{Context as _, Result, ensure};
use axum::{Router, http::StatusCode, http::Uri};
use serde_json::json;
use tokio::net::TcpListener;

/// Component, version, file as published, and its members; without members it is the program itself.
const FILES: [(&str, &str, &str, &[&str]); 8] = [
    ("kubeadm", super::KUBERNETES, "kubeadm", &[]),
    ("kubelet", super::KUBERNETES, "kubelet", &[]),
    ("kubectl", super::KUBERNETES, "kubectl", &[]),
    ("runc", "1.4.3", "runc.amd64", &[]),
    (
        "etcd",
        "3.6.16",
        "etcd-v3.6.16-linux-amd64.tar.gz",
        &[
            "etcd-v3.6.16-linux-amd64/etcd",
            "etcd-v3.6.16-linux-amd64/etcdctl",
            "etcd-v3.6.16-linux-amd64/etcdutl",
        ],
    ),
    (
        "containerd",
        "2.4.2",
        "containerd-2.4.2-linux-amd64.tar.gz",
        &["bin/containerd", "bin/containerd-shim-runc-v2", "bin/ctr"],
    ),
    ("cni-plugins", "1.9.1", "cni-plugins-linux-amd64-v1.9.1.tgz", &["bridge", "loopback"]),
    ("crictl", "1.36.0", "crictl-v1.36.0-linux-amd64.tar.gz", &["crictl"]),
];

/// The versions of components, as they stand in a Cluster file.
pub(super) const COMPONENTS: &str =
    "{etcd: v3.6.16, containerd: v2.4.2, runc: v1.4.3, cni: v1.9.1, crictl: v1.36.0}";

/// Makes the files, writes their catalogue, and serves them by their names.
pub(super) async fn start(dir: &Path) -> Result<String> {
    let (mut files, mut catalogue) = (BTreeMap::new(), serde_json::Map::new());
    for (component, version, name, members) in FILES {
        let content = make(dir, name, members)?;
        catalogue.insert(component.into(), json!({"amd64": {version: kk_util::sha256(&content)}}));
        files.insert(name, content);
    }
    fs::write(dir.join("catalogue.yaml"), serde_json::to_string(&catalogue)?)?;
    let files = Arc::new(files);
    let app = Router::new().fallback(move |uri: Uri| {
        let name = uri.path().rsplit('/').next().unwrap_or_default().to_owned();
        let found = files.get(name.as_str()).cloned();
        async move { found.ok_or(StatusCode::NOT_FOUND) }
    });
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok(format!("http://{address}"))
}

fn make(dir: &Path, name: &str, members: &[&str]) -> Result<Vec<u8>> {
    if members.is_empty() {
        return Ok(format!("#!/bin/sh\n# {name}\n").into_bytes());
    }
    let root = dir.join("archives").join(name);
    for member in members {
        let path = root.join(member);
        fs::create_dir_all(path.parent().context("a member lies in a directory")?)?;
        fs::write(&path, format!("#!/bin/sh\n# {member}\n"))?;
        let made = Command::new("chmod").arg("755").arg(&path).status()?;
        ensure!(made.success(), "cannot make {} executable", path.display());
    }
    let packed = Command::new("tar").args(["-cz", "-C"]).arg(&root).args(members).output()?;
    ensure!(packed.status.success(), "tar: {}", String::from_utf8_lossy(&packed.stderr));
    Ok(packed.stdout)
}
