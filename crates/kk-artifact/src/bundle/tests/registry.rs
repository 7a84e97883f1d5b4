//! A registry with one image of two architectures, in the server of the store's tests.

use serde_json::json;

use crate::store::tests::server::Server;

/// The blobs of one image.
pub(super) struct Pushed {
    /// Path and content of each layer, amd64 first.
    pub(super) layers: Vec<(String, Vec<u8>)>,
    pub(super) index_digest: String,
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", kk_util::sha256(bytes))
}

/// Serves `team/app:v1` for amd64 and arm64, with an attestation, which is for no platform.
pub(super) fn push(server: &Server) -> Pushed {
    push_as(server, "team/app")
}

/// The same under another name. The tag `single` is the manifest for amd64.
pub(super) fn push_as(server: &Server, name: &str) -> Pushed {
    let path = format!("/v2/{name}");
    let mut manifests = Vec::new();
    let mut layers = Vec::new();
    for (arch, os) in [("amd64", "linux"), ("arm64", "linux"), ("unknown", "unknown")] {
        let layer: Vec<u8> = arch.bytes().cycle().take(100_000).collect();
        let rootfs = json!({"type": "layers", "diff_ids": []});
        let config = json!({"architecture": arch, "os": os, "rootfs": rootfs}).to_string().into_bytes();
        for blob in [&layer, &config] {
            server.put(&format!("{path}/blobs/{}", digest(blob)), blob);
        }
        let layer_type = "application/vnd.oci.image.layer.v1.tar";
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest(&config), "size": config.len()},
            "layers": [{"mediaType": layer_type, "digest": digest(&layer), "size": layer.len()}],
        });
        let manifest = manifest.to_string().into_bytes();
        server.put(&format!("{path}/manifests/{}", digest(&manifest)), &manifest);
        if arch == "amd64" {
            server.put(&format!("{path}/manifests/single"), &manifest);
        }
        manifests.push(json!({
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "digest": digest(&manifest),
            "size": manifest.len(),
            "platform": {"architecture": arch, "os": os},
        }));
        layers.push((format!("{path}/blobs/{}", digest(&layer)), layer));
    }
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": manifests,
    });
    let index = index.to_string().into_bytes();
    let index_digest = digest(&index);
    for reference in ["v1", &index_digest] {
        server.put(&format!("{path}/manifests/{reference}"), &index);
    }
    Pushed { layers, index_digest }
}
