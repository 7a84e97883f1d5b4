//! HTTPS servers whose certificates may change while they run.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum_server::Handle;
use axum_server::tls_rustls::RustlsConfig;
use rustls::RootCertStore;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio_util::sync::CancellationToken;

/// How often certificate files are looked at.
const LOOK: Duration = Duration::from_secs(10);
/// Time for the answers to requests that are open when the server ends.
const GRACE: Duration = Duration::from_secs(5);

/// Certificate files of a server.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// Certificate chain.
    pub certificate: PathBuf,
    /// Key.
    pub key: PathBuf,
    /// Certificate authorities that clients must be signed by; none means that clients need no certificate.
    pub client_ca: Vec<PathBuf>,
}

impl TlsFiles {
    /// All files in order, to see whether one has changed.
    fn contents(&self) -> Vec<Vec<u8>> {
        let files = [&self.certificate, &self.key].into_iter().chain(&self.client_ca);
        files.map(|path| std::fs::read(path).unwrap_or_default()).collect()
    }

    fn load(&self) -> Result<Arc<ServerConfig>, String> {
        let bad = |path: &PathBuf, why: &dyn std::fmt::Display| {
            let hint = "hint: it must be PEM; --webhook-self-signed makes certificates without your doing";
            format!("cannot use {}: {why}\n{hint}", path.display())
        };
        let read = |path: &PathBuf| -> Result<Vec<CertificateDer<'static>>, String> {
            let found = CertificateDer::pem_file_iter(path).map_err(|error| bad(path, &error))?;
            found.collect::<Result<_, _>>().map_err(|error| bad(path, &error))
        };
        let chain = read(&self.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|error| bad(&self.key, &error))?;
        let builder = ServerConfig::builder();
        let builder = if self.client_ca.is_empty() {
            builder.with_no_client_auth()
        } else {
            let mut roots = RootCertStore::empty();
            for path in &self.client_ca {
                for certificate in read(path)? {
                    roots.add(certificate).map_err(|error| bad(path, &error))?;
                }
            }
            let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build();
            builder.with_client_cert_verifier(verifier.map_err(|error| error.to_string())?)
        };
        let config = builder.with_single_cert(chain, key).map_err(|error| bad(&self.certificate, &error))?;
        Ok(Arc::new(config))
    }
}

/// Serves `router` on `address` until `stop` is cancelled. Certificates that change are taken over; ones that cannot
/// be used are reported and the old ones stay.
pub async fn serve(
    router: Router,
    address: SocketAddr,
    files: TlsFiles,
    stop: CancellationToken,
) -> Result<(), String> {
    let mut known = files.contents();
    let tls = RustlsConfig::from_config(files.load()?);
    let watch = async {
        loop {
            tokio::time::sleep(LOOK).await;
            let now = files.contents();
            if now != known {
                known = now;
                match files.load() {
                    Ok(config) => {
                        tls.reload_from_config(config);
                        tracing::info!("the certificates of the webhook server on {address} were reloaded");
                    }
                    Err(error) => tracing::error!(error, "new certificates are not used"),
                }
            }
        }
    };
    let handle = Handle::new();
    let end = async {
        stop.cancelled().await;
        handle.graceful_shutdown(Some(GRACE));
        std::future::pending::<()>().await;
    };
    let server = axum_server::bind_rustls(address, tls.clone()).handle(handle.clone());
    tokio::select! {
        () = end => Ok(()),
        () = watch => Ok(()),
        ended = server.serve(router.into_make_service()) => ended.map_err(|error| format!("cannot serve on {address}: {error}")),
    }
}
