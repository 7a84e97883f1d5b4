//! Finds values of a chart that no message may show.

use kk_config::{Secret, names_secret};
use serde_json::Value;

/// Strings and numbers in a file with values whose key, or a key above it, names a secret. A file that is not YAML yields no
/// secrets: helm refuses it without showing it.
pub(crate) fn secret_values(text: &str) -> Vec<Secret> {
    crate::base::yaml::parse(text).map(|values| secrets_in(&values)).unwrap_or_default()
}

/// The same for values that are parsed already.
pub(crate) fn secrets_in(values: &Value) -> Vec<Secret> {
    let mut found = Vec::new();
    collect(values, false, &mut found);
    found
}

fn collect(value: &Value, is_secret: bool, found: &mut Vec<Secret>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                // The value of `name` only refers to a Secret.
                let is_secret = key != "name" && (is_secret || names_secret(key));
                collect(value, is_secret, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, is_secret, found)),
        Value::String(text) if is_secret => found.push(Secret::new(text.as_str())),
        Value::Number(number) if is_secret => found.push(Secret::new(number.to_string())),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_below_a_key_that_names_a_secret_is_one() {
        let text = "host: plain\nauth: {adminPassword: one, user: plain}\ntokens: [two, {deep: three}]\n\
            pin: {password: 4444}\nimagePullSecrets: [{name: plain}]\ncreateSecret: true\n";
        let mut found: Vec<String> =
            secret_values(text).iter().map(|secret| secret.expose().to_owned()).collect();
        found.sort();
        assert_eq!(found, ["4444", "one", "three", "two"]);
        assert!(secret_values("a: [").is_empty());
    }
}
