//! Passwords and certificates: made once, kept in a Secret, so that each rendering gives the same objects.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::{Map, Value, json};

use super::{Engine, Failure, Reason};
use crate::api::Id;
use crate::payload::{Component, Generated};

const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

impl Engine {
    /// The values that a component's templates see as `generated`. What is missing is made and kept, unless nothing may be
    /// changed.
    pub(super) async fn generated(
        &self,
        component: &Component,
        dry_run: bool,
    ) -> Result<Map<String, Value>, Failure> {
        if component.generated.is_empty() {
            return Ok(Map::new());
        }
        let id = self.generated_id(&component.name);
        let secret = self.api.get(&id).await.map_err(Failure::at(&id))?;
        let mut values = Map::new();
        if let Some(Value::Object(data)) = secret.map(|mut secret| secret["data"].take()) {
            for (name, text) in data {
                let value = STANDARD.decode(text.as_str().unwrap_or_default()).ok();
                let value = value.and_then(|bytes| serde_json::from_slice(&bytes).ok());
                let broken =
                    || Failure::new(Reason::RenderFailed, format!("{id}: '{name}' is not as it was written"));
                values.insert(name.clone(), value.ok_or_else(broken)?);
            }
        }
        let missing: Vec<_> =
            component.generated.iter().filter(|one| !values.contains_key(&one.name)).collect();
        if missing.is_empty() {
            return Ok(values);
        }
        for one in missing {
            let value = make(one)
                .map_err(|why| Failure::new(Reason::RenderFailed, format!("{}: {why}", one.name)))?;
            values.insert(one.name.clone(), value);
        }
        if !dry_run {
            let data: Map<_, _> = values
                .iter()
                .map(|(name, value)| (name.clone(), STANDARD.encode(value.to_string()).into()))
                .collect();
            let secret = json!({
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": { "name": id.name, "namespace": id.namespace },
                "data": data,
            });
            self.api.apply(&secret, false).await.map_err(Failure::at(&id))?;
        }
        Ok(values)
    }

    /// The Secret with the values of a component.
    pub(super) fn generated_id(&self, component: &str) -> Id {
        let name = format!("ks-installer-generated-{component}");
        Id::new("v1", "Secret", self.inventories.namespace(), &name)
    }
}

/// Values as good as those that are kept, for looking at what would be rendered.
pub fn examples(component: &Component) -> Result<Map<String, Value>, String> {
    component.generated.iter().map(|one| Ok((one.name.clone(), make(one)?))).collect()
}

fn make(one: &Generated) -> Result<Value, String> {
    match (one.password, &one.certificate) {
        (Some(length), None) => password(length).map(Value::from),
        (None, Some(names)) => certificate(names),
        _ => Err("it needs either 'password' or 'certificate'".to_owned()),
    }
}

fn password(length: usize) -> Result<String, String> {
    let mut text = String::with_capacity(length);
    while text.len() < length {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| error.to_string())?;
        // 248 is the largest multiple of 62 in a byte: all letters are as likely.
        let letters =
            bytes.iter().filter(|byte| **byte < 248).map(|byte| LETTERS[usize::from(byte % 62)] as char);
        text.extend(letters.take(length - text.len()));
    }
    Ok(text)
}

/// A certificate by an authority whose key nobody keeps.
fn certificate(names: &[String]) -> Result<Value, String> {
    let text = |error: rcgen::Error| error.to_string();
    let mut ca = CertificateParams::default();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.distinguished_name.push(DnType::CommonName, "ks-installer");
    let ca_key = KeyPair::generate().map_err(text)?;
    let ca_cert = ca.self_signed(&ca_key).map_err(text)?;
    let mut params = CertificateParams::new(names.to_vec()).map_err(text)?;
    if let Some(name) = names.first() {
        params.distinguished_name.push(DnType::CommonName, name.as_str());
    }
    let key = KeyPair::generate().map_err(text)?;
    let cert = params.signed_by(&key, &Issuer::new(ca, ca_key)).map_err(text)?;
    Ok(json!({ "ca": ca_cert.pem(), "cert": cert.pem(), "key": key.serialize_pem() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_have_their_length_and_are_different() {
        let (one, other) = (password(40).unwrap(), password(40).unwrap());
        assert!(
            one.len() == 40 && one.bytes().all(|byte| LETTERS.contains(&byte)) && one != other,
            "{one} {other}"
        );
    }

    #[test]
    fn a_certificate_comes_with_its_authority_and_key() {
        let made = certificate(&["a.b.svc".to_owned()]).unwrap();
        for (part, start) in
            [("ca", "-----BEGIN CERT"), ("cert", "-----BEGIN CERT"), ("key", "-----BEGIN PRIV")]
        {
            assert!(made[part].as_str().unwrap().starts_with(start), "{made}");
        }
    }
}
