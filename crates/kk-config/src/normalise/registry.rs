//! Where things come from: `spec.registry`, `spec.download` and `spec.components`.

use super::syntax;
use crate::Components;
use crate::findings::{At, Findings};
use crate::spec::{Download, Registry, RegistryAuth, Spec};
use crate::v1alpha2::RemoteMirror;
use std::collections::BTreeMap;

pub(super) fn check(doc: &Registry, at: At<'_>, out: &mut Findings<'_>) {
    if let Some(name) = &doc.private_registry {
        check_registry(name, true, at.key("privateRegistry"), out);
    }
    if let Some(namespace) = doc.namespace_override.as_ref().filter(|text| !is_image_path(text)) {
        let hint = "use small letters, digits, `-`, `_`, `.` and `/`";
        out.error(
            at.key("namespaceOverride"),
            format!("`{namespace}` cannot be a namespace of images"),
            hint,
        );
    }
    for (i, name) in doc.insecure_registries.iter().enumerate() {
        check_registry(name, false, at.key("insecureRegistries").item(i), out);
    }
    check_mirrors(&doc.registry_mirrors, at.key("registryMirrors"), out);
    syntax::check_data_directory(
        &doc.containerd_data_dir,
        "containerd's directory",
        at.key("containerdDataDir"),
        out,
    );
    syntax::check_data_directory(
        &doc.registry_data_dir,
        "the registry's directory",
        at.key("registryDataDir"),
        out,
    );
    if doc.registry_push_port == 0 {
        out.error(at.key("registryPushPort"), "0 is not a port", "give a number from 1 to 65535");
    }
    check_auths(&doc.auths, at.key("auths"), out);
    check_remote_mirrors(&doc.remote_mirrors, at.key("remoteMirrors"), out);
}

/// The registry that kk sets up has two processes.
pub(super) fn check_ports(spec: &Spec, at: At<'_>, out: &mut Findings<'_>) {
    let Some(own) = spec.own_registry().filter(|own| own.port == own.push_port) else { return };
    let place = ["registryPushPort", "privateRegistry"].into_iter().find(|key| at.has(key));
    out.error(
        place.map_or(at, |key| at.key(key)),
        format!("the registry cannot use port {} for pulls and for pushes", own.port),
        "set `registryPushPort` to another port; without a port in `privateRegistry`, pulls use 443 (80 with `plainHTTP`)",
    );
}

/// `host[:port]`, with a path behind it where that is allowed.
fn check_registry(text: &str, path_allowed: bool, at: At<'_>, out: &mut Findings<'_>) {
    let hint = if text.contains("://") {
        "remove `https://`; for plain HTTP set `registry.auths.<host>.plainHTTP: true`"
    } else if path_allowed {
        "give host, host:port or host:port/path"
    } else {
        "give host or host:port"
    };
    let (host, path) = text.split_once('/').map_or((text, None), |(host, path)| (host, Some(path)));
    let path_fits = path.is_none_or(|path| path_allowed && is_image_path(path));
    if !is_host_and_port(host) || !path_fits {
        out.error(at, format!("`{text}` is not a registry"), hint);
    }
}

fn is_host_and_port(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        // An IPv6 address without port ends with its bracket.
        Some((host, port)) if !text.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let v6 = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let host_fits = v6.map_or_else(
        || syntax::is_dns_name(&host.to_lowercase()),
        |address| address.parse::<std::net::Ipv6Addr>().is_ok(),
    );
    host_fits && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0))
}

/// A repository path of the OCI distribution specification.
fn is_image_path(text: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty()
            && part.starts_with(|c: char| c.is_ascii_alphanumeric())
            && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.".contains(&b))
    };
    text.split('/').all(part)
}

/// Mirrors may lack a scheme (then it is https), but nothing else.
fn check_mirrors(urls: &[String], at: At<'_>, out: &mut Findings<'_>) {
    for (i, url) in urls.iter().enumerate() {
        let full = if url.contains("://") { url.clone() } else { format!("https://{url}") };
        if let Some(problem) = syntax::url_problem(&full) {
            out.error(at.item(i), "this is not the URL of a mirror", problem);
        }
    }
}

fn check_remote_mirrors(docs: &BTreeMap<String, RemoteMirror>, at: At<'_>, out: &mut Findings<'_>) {
    for (host, doc) in docs {
        let place = at.key(host);
        check_registry(host, false, at.name(host), out);
        if doc.endpoint.is_empty() {
            out.missing(place, format!("registry `{host}` has no mirror"), "add `endpoint: [https://…]`");
        }
        check_mirrors(&doc.endpoint, place.key("endpoint"), out);
    }
}

fn check_auths(docs: &BTreeMap<String, RegistryAuth>, at: At<'_>, out: &mut Findings<'_>) {
    for (host, doc) in docs {
        let place = at.key(host);
        check_registry(host, false, at.name(host), out);
        syntax::check_secret_length(doc.password.as_ref(), "password", place, out);
        match (&doc.username, &doc.password) {
            (Some(_), None) => out.missing(
                place.key("username"),
                format!("the user of `{host}` has no password"),
                "add `password: …`",
            ),
            (None, Some(_)) => out.missing(
                place.name("password"),
                format!("the password for `{host}` has no user"),
                "add `username: …`",
            ),
            _ => {}
        }
    }
}

pub(super) fn download(mut download: Download, at: At<'_>, out: &mut Findings<'_>) -> Download {
    if let Some(problem) = download.mirror.as_deref().and_then(syntax::url_problem) {
        out.error(at.key("mirror"), "this is not the URL of a mirror", problem);
    }
    download.mirror = download.mirror.map(|url| url.trim_end_matches('/').to_owned());
    if download.public_key.as_deref().is_some_and(|key| !is_minisign_key(key)) {
        out.error(
            at.key("publicKey"),
            "this is not a public key of minisign",
            "give the line of minisign.pub that begins with RW, not the name of a file",
        );
    }
    download
}

/// The 42 bytes of such a key begin with the name of the algorithm, `Ed`.
fn is_minisign_key(text: &str) -> bool {
    text.len() == 56
        && text.starts_with("RW")
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(&byte))
}

/// The versions of the file; those of the command line win.
pub(super) fn components(
    mut components: Components,
    given: &Components,
    at: At<'_>,
    out: &mut Findings<'_>,
) -> Components {
    for ((key, version), (_, given)) in components.iter_mut().zip(given.iter()) {
        if let Some(given) = given {
            *version = Some(given.to_owned());
            continue;
        }
        let Some(text) = version.take() else { continue };
        *version = component_version(&text);
        if version.is_none() {
            let message = format!("`{text}` is not a version of {key}");
            out.error(at.key(key), message, "give it as it was released, such as 1.2.3");
        }
    }
    components
}

/// The version of a component without its `v`, if the text can be one.
pub fn component_version(text: &str) -> Option<String> {
    let bare = text.strip_prefix('v').unwrap_or(text);
    let fits = bare.starts_with(|c: char| c.is_ascii_digit())
        && bare.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.+".contains(&b));
    fits.then(|| bare.to_owned())
}

#[cfg(test)]
mod tests {
    use super::is_host_and_port;

    #[test]
    fn registry_hosts() {
        for good in ["docker.io", "registry.example:5000", "10.0.0.1:5000", "[fd00::1]:5000", "[fd00::1]"] {
            assert!(is_host_and_port(good), "{good}");
        }
        for bad in ["", ":5000", "a:0", "a:b", "a:70000", "https://a", "a b", "[fd00::1"] {
            assert!(!is_host_and_port(bad), "{bad}");
        }
    }
}
