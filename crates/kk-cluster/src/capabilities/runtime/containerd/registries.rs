//! Registries that need a configuration, and how containerd reaches them: `certs.d/<registry>/hosts.toml`.
//!
//! Format: containerd, `docs/hosts.md`.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use kk_config::{Credentials, RegistryAuth, Secret, Spec};
use serde_json::{Value, json};

use crate::base::error::BuildError;

/// The directory of a registry below `certs.d`.
pub(super) struct Registry {
    /// `host[:port]`, the directory's name.
    pub host: String,
    /// Values of the template `containerd/hosts.toml`.
    pub values: Value,
    /// Certificates and keys in it: file name, text, and whether it is secret.
    pub files: Vec<(String, String, bool)>,
}

/// All registries of the file that need a configuration: those with a mirror, their own CA or credentials, and insecure ones.
pub(super) fn registries(spec: &Spec) -> Result<Vec<Registry>, BuildError> {
    let registry = &spec.registry;
    let mut mirrors: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    if !registry.registry_mirrors.is_empty() {
        mirrors.insert("docker.io", registry.registry_mirrors.iter().map(String::as_str).collect());
    }
    for (host, mirror) in &registry.remote_mirrors {
        mirrors.entry(host).or_default().extend(mirror.endpoint.iter().map(String::as_str));
    }
    let mut hosts: BTreeSet<&str> = mirrors.keys().copied().collect();
    hosts.extend(registry.auths.keys().map(String::as_str));
    hosts.extend(registry.insecure_registries.iter().map(String::as_str));
    hosts.into_iter().map(|host| one(spec, host, mirrors.get(host).map_or(&[][..], Vec::as_slice))).collect()
}

/// Reads every certificate that the file names, so that a wrong path is reported before the first change.
pub(crate) fn check(spec: &Spec) -> Result<(), BuildError> {
    registries(spec).map(|_| ())
}

fn one(spec: &Spec, host: &str, mirrors: &[&str]) -> Result<Registry, BuildError> {
    let mut files = Vec::new();
    let mut endpoints = Vec::new();
    for url in mirrors {
        endpoints.push(endpoint(spec, host, url, &mut files)?);
    }
    let own = spec.registry.auths.get(host);
    let plain = own.is_some_and(|auth| auth.plain_http);
    let server = format!("{}://{}", if plain { "http" } else { "https" }, upstream(host));
    if own.is_some() || is_insecure(spec, host) {
        endpoints.push(endpoint(spec, host, &server, &mut files)?);
    }
    // An insecure registry uses HTTPS with any certificate, or plain HTTP; containerd tries both in this order.
    if is_insecure(spec, host) && !plain {
        endpoints.push(endpoint(spec, host, &format!("http://{}", upstream(host)), &mut files)?);
    }
    let values = json!({"registry": host, "server": json!(server).to_string(), "endpoints": endpoints});
    Ok(Registry { host: host.to_owned(), values, files })
}

/// Names, user names and passwords of registries, as TOML strings, for the configuration of containerd 1.x: it does not send the
/// headers of hosts.toml to servers that issue tokens.
pub(super) fn credentials(spec: &Spec) -> Vec<Value> {
    let quoted = |text: &str| json!(text).to_string();
    let entry = |(host, auth): (&String, &RegistryAuth)| {
        let pair = auth.credentials()?;
        let (username, password) = (quoted(pair.username), quoted(pair.password.expose()));
        Some(json!({"host": quoted(upstream(host)), "username": username, "password": password}))
    };
    spec.registry.auths.iter().filter_map(entry).collect()
}

/// The registry of Docker Hub has another name than its images.
fn upstream(host: &str) -> &str {
    if host == "docker.io" { "registry-1.docker.io" } else { host }
}

fn is_insecure(spec: &Spec, host: &str) -> bool {
    spec.registry.insecure_registries.iter().any(|insecure| insecure == host)
}

/// The values of one `[host."URL"]` table; its certificates are added to `files`.
fn endpoint(
    spec: &Spec,
    registry: &str,
    url: &str,
    files: &mut Vec<(String, String, bool)>,
) -> Result<Value, BuildError> {
    let quoted = |text: &str| json!(text).to_string();
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (host, path) = rest.split_once('/').map_or((rest, ""), |(host, path)| (host, path));
    let auth = spec.registry.auths.get(host).cloned().unwrap_or_default();
    let directory = format!("/etc/containerd/certs.d/{registry}");
    let certs = certificates(&auth)?;
    let mut add = |kind: &str, text: &str, secret: bool| {
        let name = format!("{}.{kind}", host.replace(':', "_"));
        let path = quoted(&format!("{directory}/{name}"));
        if !files.iter().any(|(known, _, _)| *known == name) {
            files.push((name, text.to_owned(), secret));
        }
        path
    };
    let ca = certs.ca.as_deref().map(|text| add("crt", text, false));
    let client = match (&certs.cert, &certs.key) {
        (Some(cert), Some(key)) => {
            Some(json!({"cert": add("cert", cert, false), "key": add("key", key, true)}))
        }
        _ => None,
    };
    let authorization =
        auth.credentials().map(|pair| quoted(&format!("Basic {}", basic_auth(pair).expose())));
    Ok(json!({
        "url": quoted(url.trim_end_matches('/')),
        // A mirror below a path serves the registry's API at that path, not below /v2.
        "override_path": !path.trim_matches('/').is_empty(),
        "skip_verify": auth.skip_tls_verify || is_insecure(spec, host),
        "ca": ca,
        "client": client,
        "authorization": authorization,
    }))
}

/// User name and password in the form of an HTTP header (RFC 7617), as secret as the password.
pub(crate) fn basic_auth(pair: Credentials<'_>) -> Secret {
    let text = format!("{}:{}", pair.username, pair.password.expose());
    Secret::new(crate::base::encoding::base64(text.as_bytes()))
}

/// Texts of the PEM files of a `certsPath`.
#[derive(Default)]
struct Certificates {
    ca: Option<String>,
    cert: Option<String>,
    key: Option<String>,
}

/// Docker's convention for such a directory: `*.crt` is the CA, `*.cert` and `*.key` belong to the client.
fn certificates(auth: &RegistryAuth) -> Result<Certificates, BuildError> {
    let mut found = Certificates::default();
    let Some(directory) = &auth.certs_path else { return Ok(found) };
    let fail = |reason: std::io::Error| {
        BuildError::config(
            format!("cannot read registry certificates in {directory}: {reason}"),
            "correct certsPath in spec.registry.auths",
        )
    };
    let mut paths: Vec<_> = std::fs::read_dir(Path::new(directory))
        .map_err(fail)?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    for path in paths {
        let file = match path.extension().and_then(|extension| extension.to_str()) {
            Some("crt") => &mut found.ca,
            Some("cert") => &mut found.cert,
            Some("key") => &mut found.key,
            _ => continue,
        };
        *file = Some(std::fs::read_to_string(&path).map_err(fail)?);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn spec(registry: &str) -> Spec {
        testing::spec(&format!(
            "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {{name: t}}\nspec:\n  hosts:\n  \
             - {{name: a, address: 192.0.2.1}}\n  roleGroups: {{etcd: [a], control-plane: [a], worker: [a]}}\n  \
             registry: {registry}\n"
        ))
    }

    fn urls(spec: &Spec) -> Vec<(String, bool)> {
        let registries = registries(spec).unwrap();
        let endpoints = registries[0].values["endpoints"].as_array().unwrap();
        let url = |endpoint: &Value| {
            (endpoint["url"].as_str().unwrap().to_owned(), endpoint["skip_verify"].as_bool().unwrap())
        };
        endpoints.iter().map(url).collect()
    }

    #[test]
    fn an_insecure_registry_is_tried_with_any_certificate_and_without_one() {
        let both =
            [("\"https://hub.local:5000\"".to_owned(), true), ("\"http://hub.local:5000\"".to_owned(), true)];
        assert_eq!(urls(&spec("{insecureRegistries: [\"hub.local:5000\"]}")), both);
        let secure = [("\"https://hub.local\"".to_owned(), false)];
        assert_eq!(urls(&spec("{auths: {hub.local: {username: u, password: p}}}")), secure);
    }

    #[test]
    fn credentials_are_under_the_name_that_containerd_asks_for() {
        let spec =
            spec("{auths: {docker.io: {username: u, password: 'p\"w'}, hub.local: {skipTLSVerify: true}}}");
        let wanted =
            json!([{"host": "\"registry-1.docker.io\"", "username": "\"u\"", "password": "\"p\\\"w\""}]);
        assert_eq!(json!(credentials(&spec)), wanted);
    }
}
