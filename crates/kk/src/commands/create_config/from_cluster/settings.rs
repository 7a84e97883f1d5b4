//! Compares settings of components with the values that kk and kubeadm set themselves.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Flags of a component in a configuration of kubeadm: a list of names and values since v1beta4, a map before.
pub(super) fn flags(component: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match &component["extraArgs"] {
        Value::Array(list) => list.iter().map(|flag| (text(&flag["name"]), text(&flag["value"]))).collect(),
        Value::Object(map) => map.iter().map(|(name, value)| (name.clone(), text(value))).collect(),
        _ => BTreeMap::new(),
    }
}

/// Feature gates in the form of a flag: `A=true,B=false`.
pub(super) fn gates(flag: &str) -> BTreeMap<String, bool> {
    flag.split(',')
        .filter_map(|gate| {
            let (name, value) = gate.split_once('=')?;
            Some((name.trim().to_owned(), value.trim().parse().ok()?))
        })
        .collect()
}

/// Settings that are null if they are not set, so that zero is a value.
const NULLABLE: [&str; 7] = [
    "localhostNodePorts",
    "masqueradeBit",
    "maxPerCore",
    "min",
    "oomScoreAdj",
    "tcpCloseWaitTimeout",
    "tcpEstablishedTimeout",
];
/// The only section whose numbers have no form for "not set".
const LOGGING: &str = "logging";

/// The setting without the zero values that kubeadm writes for everything that is not set.
pub(super) fn without_zeros(key: &str, value: &Value) -> Value {
    let Value::Object(map) = value else { return value.clone() };
    let is_set = |name: &str, value: &Value| {
        if NULLABLE.contains(&name) {
            return !value.is_null();
        }
        let is_zero = || value.as_f64() == Some(0.0) || value == "0";
        !(is_unset(value) || key == LOGGING && is_zero())
    };
    let inner = |name: &str, value: &Value| without_zeros(if key == LOGGING { LOGGING } else { name }, value);
    let map: Map<_, _> = map
        .iter()
        .map(|(name, value)| (name.clone(), inner(name, value)))
        .filter(|(name, value)| is_set(name, value))
        .collect();
    Value::Object(map)
}

pub(super) fn is_unset(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => ["", "0s"].contains(&text.as_str()),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

/// A duration as a user writes it: `8760h` for `8760h0m0s`.
pub(super) fn short_duration(text: &str) -> &str {
    let text = text.strip_suffix("m0s").map_or(text, |_| &text[..text.len() - 2]);
    text.strip_suffix("h0m").map_or(text, |_| &text[..text.len() - 2])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn zeros_of_kubeadm_are_no_settings() {
        let logging =
            json!({"flushFrequency": 0, "options": {"json": {"infoBufferSize": "0"}}, "verbosity": 4});
        assert_eq!(without_zeros("logging", &logging), json!({"verbosity": 4}));
        assert!(is_unset(&without_zeros("a", &json!({"a": {"b": "0s", "c": null, "d": []}}))));
        assert!(!is_unset(&json!(false)) && !is_unset(&json!(0)));
        let conntrack =
            json!({"maxPerCore": 0, "min": null, "tcpEstablishedTimeout": "0s", "udpTimeout": "0s"});
        let set = json!({"maxPerCore": 0, "tcpEstablishedTimeout": "0s"});
        assert_eq!(without_zeros("conntrack", &conntrack), set);
    }

    #[test]
    fn durations_are_written_as_users_do() {
        for (text, short) in [
            ("8760h0m0s", "8760h"),
            ("1h30m0s", "1h30m"),
            ("90s", "90s"),
            ("8760h", "8760h"),
            ("10m0s", "10m"),
        ] {
            assert_eq!(short_duration(text), short);
        }
    }
}
