//! Generates passwords and certificates. They are created once and stored in a Secret, so that every rendering is equal. A value
//! is renewed if the spec requests it (`rotate`), and a certificate also before it expires.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::{Map, Value, json};
use time::OffsetDateTime;

use super::{Engine, Failure, Reason};
use crate::api::Id;
use crate::payload::{Component, Generated, Payload};

/// Validity of a certificate.
pub(super) const LIFE: Duration = Duration::from_hours(365 * 24);
/// Time before its expiry at which a certificate is renewed. An installer that was off for some days still renews it in time.
const BEFORE_ITS_END: i64 = 30 * 24 * 3600;
/// The clock of a node may be slow.
const BEFORE_NOW: Duration = Duration::from_hours(1);
/// Annotation prefix of the Secret: the value of `rotate` in the spec when a value was renewed on request.
const ROTATED: &str = "rotated.installer.kubesphere.io";
const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

impl Engine {
    /// The values that templates of a component use as `generated`. Missing, expiring and requested values are created, and
    /// stored except in a dry run.
    pub(super) async fn generated(
        &self,
        component: &Component,
        spec: &Value,
        dry_run: bool,
    ) -> Result<Map<String, Value>, Failure> {
        if component.generated.is_empty() {
            return Ok(Map::new());
        }
        let id = self.generated_id(&component.name);
        let (secret, mut values) = self.kept_values(&id).await?;
        let others = self.values_of_others(component, dry_run).await?;
        let asked = annotations(component, spec);
        let is_asked = |one: &Generated| {
            let key = format!("{ROTATED}/{}", one.name);
            asked.get(&key).is_some_and(|word| secret["metadata"]["annotations"][&key] != *word)
        };
        let is_due = |value: &Value| due(value).is_some_and(|due| due <= now());
        let stays =
            |one: &Generated| values.get(&one.name).is_some_and(|value| !is_due(value)) && !is_asked(one);
        let own = component.generated.iter().filter(|one| one.of.is_none());
        let wanted: Vec<_> = own.filter(|one| !stays(one)).collect();
        if wanted.is_empty() {
            values.extend(others);
            return Ok(values);
        }
        for one in wanted {
            let value = make(one, self.certificate_life, values.get(&one.name))
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
                "metadata": { "name": id.name, "namespace": id.namespace, "annotations": asked },
                "data": data,
            });
            self.api.apply(&secret, false).await.map_err(Failure::at(&id))?;
        }
        values.extend(others);
        Ok(values)
    }

    /// The Secret of a component, and its values.
    async fn kept_values(&self, id: &Id) -> Result<(Value, Map<String, Value>), Failure> {
        let mut secret = self.api.get(id).await.map_err(Failure::at(id))?.unwrap_or_default();
        let mut values = Map::new();
        if let Value::Object(data) = secret["data"].take() {
            for (name, text) in data {
                let value = STANDARD.decode(text.as_str().unwrap_or_default()).ok();
                let value = value.and_then(|bytes| serde_json::from_slice(&bytes).ok());
                let broken =
                    || Failure::new(Reason::RenderFailed, format!("{id}: '{name}' is not as it was written"));
                values.insert(name.clone(), value.ok_or_else(broken)?);
            }
        }
        Ok((secret, values))
    }

    /// Generated values of components on which this component depends.
    async fn values_of_others(
        &self,
        component: &Component,
        dry_run: bool,
    ) -> Result<Map<String, Value>, Failure> {
        let mut found = Map::new();
        for one in &component.generated {
            let Some(other) = &one.of else { continue };
            let id = self.generated_id(other);
            let value = match self.kept_values(&id).await?.1.remove(&one.name) {
                Some(value) => value,
                // In a dry run before the installation, an example replaces the missing value.
                None if dry_run => example(&self.renderer.payload, one)
                    .map_err(|why| Failure::new(Reason::RenderFailed, why))?,
                None => {
                    let text = format!("{id} has no value '{}', which {other} makes", one.name);
                    return Err(Failure::new(Reason::RenderFailed, text));
                }
            };
            found.insert(one.name.clone(), value);
        }
        Ok(found)
    }

    /// Identifies the Secret with the generated values of a component.
    pub(super) fn generated_id(&self, component: &str) -> Id {
        let name = format!("ks-installer-generated-{component}");
        Id::new("v1", "Secret", self.inventories.namespace(), &name)
    }
}

/// Example values for a rendering that is not applied.
pub fn examples(payload: &Payload, component: &Component) -> Result<Map<String, Value>, String> {
    component.generated.iter().map(|one| Ok((one.name.clone(), example(payload, one)?))).collect()
}

/// Creates an example. A value of another component follows the declaration in that component.
fn example(payload: &Payload, one: &Generated) -> Result<Value, String> {
    let Some(other) = &one.of else { return make(one, LIFE, None) };
    let mut made = payload.components().get(other).into_iter().flat_map(|maker| &maker.generated);
    let made = made.find(|made| made.of.is_none() && made.name == one.name);
    make(made.ok_or_else(|| format!("{other} makes no value '{}'", one.name))?, LIFE, None)
}

/// Time at which the first of these values has to be renewed.
pub(super) fn first_due(values: &Map<String, Value>) -> Option<i64> {
    values.values().filter_map(due).min()
}

/// Current time in seconds since 1970.
pub(super) fn now() -> i64 {
    OffsetDateTime::now_utc().unix_timestamp()
}

/// Time at which a value has to be renewed. Certificates of older versions have no expiry time.
fn due(value: &Value) -> Option<i64> {
    Some(value["until"].as_i64()? - BEFORE_ITS_END)
}

/// The requested renewals, as annotations of the Secret.
fn annotations(component: &Component, spec: &Value) -> Map<String, Value> {
    let asked = spec["rotate"][&component.name].as_object();
    asked.into_iter().flatten().map(|(name, word)| (format!("{ROTATED}/{name}"), text(word))).collect()
}

fn text(word: &Value) -> Value {
    word.as_str().map_or_else(|| word.to_string(), str::to_owned).into()
}

/// Creates a value. `old` is the value that it replaces.
fn make(one: &Generated, life: Duration, old: Option<&Value>) -> Result<Value, String> {
    match (one.password, &one.certificate) {
        (Some(length), None) => password(length).map(Value::from),
        (None, Some(names)) => certificate(names, life, old),
        _ => Err("it needs either 'password' or 'certificate'".to_owned()),
    }
}

/// Creates a password with upper case and lower case letters and a digit, as KubeSphere requires for accounts.
fn password(length: usize) -> Result<String, String> {
    loop {
        let text = letters(length)?;
        let has = |is: fn(&u8) -> bool| text.bytes().any(|byte| is(&byte));
        if length < 3 || has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_digit)
        {
            return Ok(text);
        }
    }
}

fn letters(length: usize) -> Result<String, String> {
    let mut text = String::with_capacity(length);
    while text.len() < length {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| error.to_string())?;
        // 248 is the largest multiple of 62 that fits into a byte, so all letters are equally likely.
        let letters =
            bytes.iter().filter(|byte| **byte < 248).map(|byte| LETTERS[usize::from(byte % 62)] as char);
        text.extend(letters.take(length - text.len()));
    }
    Ok(text)
}

/// Creates a certificate and its CA, whose key is discarded. `ca` also contains the previous CA, because some servers present the
/// old certificate until all of them have the new one.
fn certificate(names: &[String], life: Duration, old: Option<&Value>) -> Result<Value, String> {
    let text = |error: rcgen::Error| error.to_string();
    let begin = OffsetDateTime::now_utc();
    let end = begin + life;
    let mut ca = CertificateParams::default();
    (ca.not_before, ca.not_after) = (begin - BEFORE_NOW, end);
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.distinguished_name.push(DnType::CommonName, "ks-installer");
    let ca_key = KeyPair::generate().map_err(text)?;
    let ca_cert = ca.self_signed(&ca_key).map_err(text)?;
    let mut params = CertificateParams::new(names.to_vec()).map_err(text)?;
    (params.not_before, params.not_after) = (begin - BEFORE_NOW, end);
    if let Some(name) = names.first() {
        params.distinguished_name.push(DnType::CommonName, name.as_str());
    }
    let key = KeyPair::generate().map_err(text)?;
    let cert = params.signed_by(&key, &Issuer::new(ca, ca_key)).map_err(text)?;
    let cas = ca_cert.pem() + old.map_or("", newest_authority);
    Ok(json!({ "ca": cas, "cert": cert.pem(), "key": key.serialize_pem(), "until": end.unix_timestamp() }))
}

/// The first CA of a value, which signed its certificate.
fn newest_authority(value: &Value) -> &str {
    const END: &str = "-----END CERTIFICATE-----\n";
    let cas = value["ca"].as_str().unwrap_or_default();
    cas.find(END).and_then(|at| cas.get(..at + END.len())).unwrap_or_default()
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
    fn passwords_have_letters_of_both_sizes_and_a_digit() {
        // About five of six random passwords of this length do not have all of them.
        for text in (0..50).map(|_| password(3).unwrap()) {
            let count = |is: fn(&u8) -> bool| text.bytes().filter(&is).count();
            let kinds =
                [count(u8::is_ascii_uppercase), count(u8::is_ascii_lowercase), count(u8::is_ascii_digit)];
            assert_eq!(kinds, [1, 1, 1], "{text}");
        }
        assert_eq!(password(2).unwrap().len(), 2);
    }

    #[test]
    fn a_certificate_comes_with_its_authority_and_key() {
        let made = certificate(&["a.b.svc".to_owned()], LIFE, None).unwrap();
        for (part, start) in
            [("ca", "-----BEGIN CERT"), ("cert", "-----BEGIN CERT"), ("key", "-----BEGIN PRIV")]
        {
            assert!(made[part].as_str().unwrap().starts_with(start), "{made}");
        }
    }

    #[test]
    fn the_authority_of_before_stays_beside_the_new_one_and_older_ones_go() {
        let make = |old| certificate(&["a.b.svc".to_owned()], LIFE, old).unwrap();
        let first = make(None);
        let second = make(Some(&first));
        let third = make(Some(&second));
        let ca = |value: &Value| value["ca"].as_str().unwrap().to_owned();
        assert!(ca(&second).ends_with(&ca(&first)) && ca(&second).len() > ca(&first).len());
        assert_eq!(ca(&third).matches("BEGIN").count(), 2);
        assert!(ca(&third).ends_with(newest_authority(&second)));
    }

    #[test]
    fn a_certificate_is_due_a_month_before_its_end() {
        let days = |days: u64| Duration::from_hours(days * 24);
        for (life, is_due) in [(days(29), true), (days(31), false), (LIFE, false)] {
            let made = certificate(&["a".to_owned()], life, None).unwrap();
            assert_eq!(due(&made).unwrap() <= now(), is_due, "{life:?}");
        }
    }
}
