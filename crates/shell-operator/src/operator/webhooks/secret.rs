//! Certificates that the operator makes and keeps in a Secret, so that all replicas have the same.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};

use crate::operator::{Operator, WebhookServer};
use crate::webhook::certificates::{Bundle, self_signed};

impl Operator {
    /// Takes the certificates from the Secret, which is made when it is not there, and puts them where the server
    /// reads them.
    pub(super) async fn use_own_certificates(&self, server: &mut WebhookServer) -> Result<(), String> {
        let bundle = self.own_certificates(&server.service).await?;
        let dir = self.settings.tmp_dir.join(format!("certificates-{}", server.service));
        let write = || -> std::io::Result<()> {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
            for (name, text) in
                [("ca.crt", &bundle.ca), ("tls.crt", &bundle.certificate), ("tls.key", &bundle.key)]
            {
                write_secret(&dir.join(name), text)?;
            }
            Ok(())
        };
        write().map_err(|error| format!("cannot write certificates to {}: {error}", dir.display()))?;
        server.ca = dir.join("ca.crt");
        server.tls.certificate = dir.join("tls.crt");
        server.tls.key = dir.join("tls.key");
        Ok(())
    }

    async fn own_certificates(&self, service: &str) -> Result<Bundle, String> {
        let settings = &self.settings.webhooks;
        let namespace = &settings.namespace;
        if namespace.is_empty() {
            return Err("--webhook-self-signed needs --namespace, where the Secret is kept".to_owned());
        }
        let name = format!("{service}-certificates");
        let collection = format!("/api/v1/namespaces/{namespace}/secrets");
        let path = format!("{collection}/{name}");
        if let Some(secret) = self.api.get(&path).await? {
            return read(&secret).ok_or_else(|| {
                format!("Secret {namespace}/{name} has no certificates; delete it to get new ones")
            });
        }
        let mut names =
            vec![format!("{service}.{namespace}.svc"), format!("{service}.{namespace}.svc.cluster.local")];
        names.extend(settings.external_host.clone());
        let bundle = self_signed(&names).map_err(|error| format!("cannot make certificates: {error}"))?;
        let secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/tls",
            "metadata": { "name": name, "namespace": namespace },
            "stringData": { "ca.crt": bundle.ca, "tls.crt": bundle.certificate, "tls.key": bundle.key },
        });
        match self.api.send(Method::POST, &collection, &secret).await {
            Ok(()) => Ok(bundle),
            // Another replica may have been faster: then its certificates are taken.
            Err(error) => self.api.get(&path).await?.as_ref().and_then(read).ok_or(error),
        }
    }
}

fn read(secret: &Value) -> Option<Bundle> {
    let text = |key: &str| {
        let bytes = STANDARD.decode(secret["data"][key].as_str()?).ok()?;
        String::from_utf8(bytes).ok()
    };
    Some(Bundle { ca: text("ca.crt")?, certificate: text("tls.crt")?, key: text("tls.key")? })
}

fn write_secret(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}
