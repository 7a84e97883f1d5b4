//! Certificates that the operator makes and keeps in a Secret, so that all replicas have the same.
//!
//! They are renewed long before their end. The API server first gets the new authority in addition to the old one. Only then does
//! the server use the new certificate, so that no request fails meanwhile.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};

use super::{Attempts, Kind, LOOK, Webhooks};
use crate::operator::WebhookServer;
use crate::webhook::certificates::{Bundle, LIFETIME, self_signed};

/// Time that the API server has to take over a new authority.
const SETTLE: Duration = Duration::from_secs(5);

impl Webhooks {
    /// Writes certificates of its own to the paths that the server and the registration read. Retries until it succeeds; `None`
    /// when the operator ends before.
    pub(super) async fn begin_own_certificates(
        &self,
        server: &mut WebhookServer,
        kind: Kind,
    ) -> Option<Bundle> {
        let mut attempts = Attempts::new(kind, "certificates");
        loop {
            match self.put_own_certificates(server).await {
                Ok(bundle) => {
                    attempts.good(self);
                    return Some(bundle);
                }
                Err(error) => {
                    if !attempts.again(self, error).await {
                        return None;
                    }
                }
            }
        }
    }

    async fn put_own_certificates(&self, server: &mut WebhookServer) -> Result<Bundle, String> {
        let bundle = self.own_certificates(&server.service).await?;
        let dir = self.core.settings.tmp_dir.join(format!("certificates-{}", server.service));
        private_dir(&dir)?;
        server.ca = dir.join("ca.crt");
        // Certificate and key are one file, so that they change together.
        server.tls.certificate = dir.join("tls.pem");
        server.tls.key.clone_from(&server.tls.certificate);
        write_secret(&server.ca, &bundle.ca)?;
        write_secret(&server.tls.certificate, &bundle.server_text())?;
        Ok(bundle)
    }

    /// Keeps the certificates up to date until the operator ends.
    pub(super) async fn keep_own_certificates(&self, server: &WebhookServer, kind: Kind, mut shown: Bundle) {
        let mut attempts = Attempts::new(kind, "certificates");
        loop {
            let go_on = match self.replace_shown(server, kind, &mut shown).await {
                Ok(()) => {
                    attempts.good(self);
                    self.pause(LOOK).await
                }
                Err(error) => attempts.again(self, error).await,
            };
            if !go_on {
                return;
            }
        }
    }

    async fn replace_shown(
        &self,
        server: &WebhookServer,
        kind: Kind,
        shown: &mut Bundle,
    ) -> Result<(), String> {
        let bundle = self.own_certificates(&server.service).await?;
        if bundle.certificate == shown.certificate {
            return Ok(());
        }
        // Until the server uses the new certificate, the current one has to be trusted too.
        write_secret(&server.ca, &format!("{}{}", bundle.ca, shown.ca))?;
        self.register_kind(server, kind).await?;
        if self.pause(SETTLE).await {
            write_secret(&server.tls.certificate, &bundle.server_text())?;
            *shown = bundle;
        }
        Ok(())
    }

    /// The certificates in the Secret, which are created if they do not exist and renewed if they have a fault.
    async fn own_certificates(&self, service: &str) -> Result<Bundle, String> {
        let settings = &self.settings;
        let namespace = &settings.namespace;
        if namespace.is_empty() {
            return Err("--webhook-self-signed needs --namespace, where the Secret is kept".to_owned());
        }
        let mut names =
            vec![format!("{service}.{namespace}.svc"), format!("{service}.{namespace}.svc.cluster.local")];
        names.extend(settings.external_host.clone());
        let name = format!("{service}-certificates");
        let collection = format!("/api/v1/namespaces/{namespace}/secrets");
        let path = format!("{collection}/{name}");
        let cannot = |error| format!("cannot make certificates: {error}");
        let Some(secret) = self.api.get(&path).await? else {
            let bundle = self_signed(&names, LIFETIME).map_err(cannot)?;
            let secret = json!({
                "apiVersion": "v1",
                "kind": "Secret",
                "type": "kubernetes.io/tls",
                "metadata": { "name": name, "namespace": namespace },
                "stringData": bundle.data(),
            });
            if let Err(error) = self.api.send(Method::POST, &collection, &secret).await {
                // Another replica may have been faster: then its certificates are taken.
                return self.api.get(&path).await?.as_ref().and_then(read).ok_or(error);
            }
            tracing::info!("Secret {namespace}/{name} has new certificates for the webhooks");
            return Ok(bundle);
        };
        let known = read(&secret).ok_or_else(|| {
            format!(
                "Secret {namespace}/{name} has no certificates\nhint: delete it, then it is created \
                     again"
            )
        })?;
        let Some(fault) = known.fault(&names) else { return Ok(known) };
        let bundle = known.renewed(&names, LIFETIME).map_err(cannot)?;
        let mut secret = secret;
        secret["stringData"] = bundle.data();
        // The version in it guards against another replica that renews at the same time.
        self.api.send(Method::PUT, &path, &secret).await?;
        tracing::info!("Secret {namespace}/{name} has new certificates for the webhooks: {fault}");
        Ok(bundle)
    }
}

impl Bundle {
    fn data(&self) -> Value {
        json!({ "ca.crt": self.ca, "tls.crt": self.certificate, "tls.key": self.key })
    }

    fn server_text(&self) -> String {
        format!("{}{}", self.certificate, self.key)
    }
}

fn read(secret: &Value) -> Option<Bundle> {
    let text = |key: &str| {
        let bytes = STANDARD.decode(secret["data"][key].as_str()?).ok()?;
        String::from_utf8(bytes).ok()
    };
    Some(Bundle { ca: text("ca.crt")?, certificate: text("tls.crt")?, key: text("tls.key")? })
}

/// Creates a directory that no other user can write to or read. Any user may have created an existing directory.
fn private_dir(dir: &Path) -> Result<(), String> {
    let cannot = |error| format!("cannot make {}: {error}", dir.display());
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(cannot)?;
    let found = std::fs::symlink_metadata(dir).map_err(cannot)?;
    let own =
        found.is_dir() && found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o777 == 0o700;
    if own {
        return Ok(());
    }
    Err(format!(
        "{} is no directory of this user alone, keys are not put there\nhint: remove it, or give the operator another --tmp-dir",
        dir.display()
    ))
}

/// Replaces a file at once, so that no reader sees half of it.
fn write_secret(path: &Path, text: &str) -> Result<(), String> {
    let unfinished = path.with_extension("new");
    let write = || {
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
        file.write_all(text.as_bytes())?;
        std::fs::rename(&unfinished, path)
    };
    write().map_err(|error| format!("cannot write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn keys_are_put_only_where_nobody_else_can_read_or_write() {
        let dir = tempfile::tempdir().unwrap();
        let place = |name: &str| dir.path().join(name);
        private_dir(&place("own")).unwrap();
        private_dir(&place("own")).unwrap();
        symlink(place("own"), place("link")).unwrap();
        fs::create_dir(place("open")).unwrap();
        fs::set_permissions(place("open"), fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["link", "open"] {
            let why = private_dir(&place(name)).unwrap_err();
            assert!(why.contains("keys are not put there"), "{why}");
        }
    }
}
