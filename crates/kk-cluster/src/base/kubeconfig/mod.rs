//! Kubeconfigs from untrusted sources: the administrator's credentials on a host, and the programs that a kubeconfig can start.
//!
//! A kubeconfig can name a program that kubectl starts. Therefore the control machine never saves the text of a host: kk verifies
//! the certificates and the key, and writes a new file.

#[cfg(test)]
mod fuzz;
mod pem;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use kk_config::Secret;
use kk_util::sha256;
use serde_json::{Map, Value, json};
use x509_parser::{certificate::X509Certificate, prelude::FromDer as _, x509::X509Name};

use crate::base::{
    encoding::{base64, from_base64},
    yaml,
};

/// Largest kubeconfig that is read from a host: 1 MiB. kubeadm's has about 6 KiB.
pub(crate) const LIMIT: u64 = 1 << 20;

/// The user, and the common name of its certificate (kubeadm, `cmd/kubeadm/app/phases/kubeconfig`).
const USER: &str = "kubernetes-admin";
/// The organizations of that certificate: the second one is from Kubernetes 1.28 and older, and a renewal keeps it.
const GROUPS: [&str; 2] = ["kubeadm:cluster-admins", "system:masters"];

/// Most CAs in one kubeconfig. During a rotation there are two.
const MOST_AUTHORITIES: usize = 8;

/// The verified credentials of the administrator.
#[derive(Debug)]
pub(crate) struct AdminKubeconfig {
    /// The CAs, DER, in their order.
    authorities: Vec<Vec<u8>>,
    /// The client certificate, DER.
    certificate: Vec<u8>,
    /// Its private key, PEM.
    key: Secret,
}

impl AdminKubeconfig {
    /// Reads the `admin.conf` of a host.
    ///
    /// # Errors
    /// The reason for the refusal, without any value that could be secret.
    pub(crate) fn verify(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() as u64 > LIMIT {
            return Err(format!("it is larger than {LIMIT} bytes"));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| "it is not text".to_owned())?;
        let document = yaml::parse_untrusted(text)?;
        let cluster = only(&document, "clusters", "cluster")?;
        let user = only(&document, "users", "user")?;
        refuse_others(cluster, "cluster", &["certificate-authority-data", "server"])?;
        refuse_others(user, "user", &["client-certificate-data", "client-key-data"])?;

        let authorities = pem::certificates(&data(cluster, "certificate-authority-data")?)
            .filter(|found| (1..=MOST_AUTHORITIES).contains(&found.len()))
            .ok_or_else(|| {
                format!("its certificate-authority-data is not 1 to {MOST_AUTHORITIES} certificates (PEM)")
            })?;
        let certificate = pem::certificates(&data(user, "client-certificate-data")?)
            .and_then(|found| <[Vec<u8>; 1]>::try_from(found).ok())
            .map(|[certificate]| certificate)
            .ok_or("its client-certificate-data is not one certificate (PEM)")?;
        let key = pem::private_key(&data(user, "client-key-data")?)
            .ok_or("its client-key-data is not one private key (PEM)")?;

        let client = parsed(&certificate).ok_or("its client certificate cannot be read")?;
        if !key.belongs_to(&client) {
            return Err("its key is not the key of its client certificate".to_owned());
        }
        let is_issuer = |authority: &Vec<u8>| {
            parsed(authority).is_some_and(|ca| client.verify_signature(Some(ca.public_key())).is_ok())
        };
        if !authorities.iter().any(is_issuer) {
            return Err("its client certificate is not signed by its CA".to_owned());
        }
        check_subject(client.subject())?;
        Ok(Self { authorities, key: key.pem(), certificate })
    }

    /// The SHA-256 of the CAs (DER).
    pub(crate) fn authorities(&self) -> BTreeSet<String> {
        self.authorities.iter().map(sha256).collect()
    }

    /// The kubeconfig for the control machine: kubeadm's, with another address. kk itself composes the URL `server`.
    pub(crate) fn text(&self, cluster: &str, server: &str) -> String {
        let authorities: String =
            self.authorities.iter().map(|der| pem::text(pem::CERTIFICATE, der)).collect();
        let certificate = base64(pem::text(pem::CERTIFICATE, &self.certificate).as_bytes());
        // A JSON string is a YAML string, too; without quotes some names are numbers. A library would fold the long lines.
        let [name, context] =
            [cluster.to_owned(), format!("{USER}@{cluster}")].map(|name| json!(name).to_string());
        format!(
            "apiVersion: v1\nkind: Config\n\
             clusters:\n- cluster:\n    certificate-authority-data: {}\n    server: {server}\n  name: {name}\n\
             contexts:\n- context:\n    cluster: {name}\n    user: {USER}\n  name: {context}\n\
             current-context: {context}\n\
             users:\n- name: {USER}\n  user:\n    client-certificate-data: {certificate}\n    client-key-data: {}\n",
            base64(authorities.as_bytes()),
            base64(self.key.expose().as_bytes()),
        )
    }
}

/// The SHA-256 of the certificates (DER) in a PEM text; empty if the text is not PEM.
pub(crate) fn authorities_of_pem(text: &[u8]) -> BTreeSet<String> {
    pem::certificates(text).into_iter().flatten().map(sha256).collect()
}

/// The SHA-256 of the CAs (DER) in a kubeconfig of the control machine; empty if it cannot be read.
pub(crate) fn authorities_of_kubeconfig(text: &str) -> BTreeSet<String> {
    let read = || {
        let document = yaml::parse_untrusted(text).ok()?;
        data(only(&document, "clusters", "cluster").ok()?, "certificate-authority-data").ok()
    };
    read().map(|text| authorities_of_pem(&text)).unwrap_or_default()
}

/// The users of a kubeconfig for which kubectl starts a program or an older plugin, each with the field that specifies it.
///
/// # Errors
/// It cannot be read.
pub fn programs(text: &str) -> Result<Vec<String>, String> {
    let document = yaml::parse(text)?;
    let entries = document["users"].as_array().into_iter().flatten();
    let starts = |entry: &Value| {
        let field = ["exec", "auth-provider"].into_iter().find(|field| entry["user"].get(field).is_some())?;
        Some(format!("{} ({field})", shown(entry["name"].as_str().unwrap_or_default())))
    };
    Ok(entries.filter_map(starts).collect())
}

/// The only entry of a list. kubeadm writes one cluster and one user; if there were several, the host would decide which one
/// counts.
fn only<'a>(document: &'a Value, list: &str, kind: &str) -> Result<&'a Map<String, Value>, String> {
    let entries = document.get(list).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    match entries {
        [entry] => {
            entry.get(kind).and_then(Value::as_object).ok_or_else(|| format!("its {kind} is not a map"))
        }
        _ => Err(format!("it has {} {list}, and kubeadm writes one", entries.len())),
    }
}

/// The longest name of a field that an error shows. Fields of kubeconfigs have at most 26 bytes.
const LONGEST_FIELD: usize = 30;

/// Refuses all fields that kubeadm does not write.
fn refuse_others(map: &Map<String, Value>, kind: &str, allowed: &[&str]) -> Result<(), String> {
    let Some(other) = map.keys().find(|name| !allowed.contains(&name.as_str())) else { return Ok(()) };
    let why = match other.as_str() {
        "exec" | "auth-provider" => "which starts a program",
        "tokenFile" | "client-certificate" | "client-key" | "certificate-authority" => {
            "which names a file of the machine that reads it"
        }
        "proxy-url" => "which sends requests to another machine",
        "insecure-skip-tls-verify" => "which accepts any server",
        _ => "which kubeadm does not write",
    };
    // In a damaged file, a line of the key may be the name of a field.
    if other.len() > LONGEST_FIELD {
        return Err(format!("its {kind} has a field with a long name, {why}"));
    }
    Err(format!("its {kind} has the field {}, {why}", shown(other)))
}

/// A field of Base64.
fn data(map: &Map<String, Value>, name: &str) -> Result<Vec<u8>, String> {
    let text = map.get(name).and_then(Value::as_str).ok_or_else(|| format!("it has no {name}"))?;
    from_base64(text.trim()).ok_or_else(|| format!("its {name} is not Base64"))
}

fn parsed(der: &[u8]) -> Option<X509Certificate<'_>> {
    let (rest, certificate) = X509Certificate::from_der(der).ok()?;
    rest.is_empty().then_some(certificate)
}

fn check_subject(subject: &X509Name<'_>) -> Result<(), String> {
    let all = |names: Vec<Option<&str>>| {
        names.into_iter().map(|name| shown(name.unwrap_or_default())).collect::<Vec<_>>()
    };
    let names: Vec<_> = subject.iter_common_name().map(|name| name.as_str().ok()).collect();
    let groups: Vec<_> = subject.iter_organization().map(|name| name.as_str().ok()).collect();
    let is_known = matches!(groups[..], [Some(group)] if GROUPS.contains(&group));
    if names[..] == [Some(USER)] && is_known {
        return Ok(());
    }
    Err(format!(
        "its client certificate is for the user {} in the group {}, not for {USER:?} in {:?} or {:?}",
        all(names).join(" and "),
        all(groups).join(" and "),
        GROUPS[0],
        GROUPS[1]
    ))
}

/// A text from a host for a message: short, and without control characters.
fn shown(text: &str) -> String {
    format!("{:?}", text.chars().take(60).collect::<String>())
}
