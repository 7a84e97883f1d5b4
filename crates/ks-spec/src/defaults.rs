//! What older installers wrote into a spec that did not say it. Templates rely on these values.

use serde_json::{Value, json};

/// Fills in what is missing.
pub(super) fn complete(spec: &mut Value, status: &Value) {
    let was_enabled = |component: &str| status[component]["status"] == "enabled";
    if spec["common"].is_object() {
        set_missing(&mut spec["common"], "redis", json!({ "enabled": was_enabled("redis") }));
        set_missing(&mut spec["common"], "openldap", json!({ "enabled": was_enabled("openldap") }));
        set_missing(&mut spec["common"], "es", json!({ "enabled": was_enabled("es") }));
        // Of one kind of store there is enough. The status does not say which one is asked for until that one is there.
        let is_elsewhere = spec["common"]["es"]["enabled"] == true;
        set_missing(&mut spec["common"], "opensearch", json!({ "enabled": !is_elsewhere }));
        let sizes = json!({ "master": { "volumeSize": "4Gi" }, "data": { "volumeSize": "20Gi" } });
        for part in ["es", "opensearch"] {
            merge_missing(&mut spec["common"][part], &sizes);
        }
        let opensearch = &mut spec["common"]["opensearch"];
        let is_own = opensearch["externalOpensearchHost"].as_str().unwrap_or_default().is_empty();
        if is_own && opensearch["basicAuth"].is_null() {
            // The account that OpenSearch's image has.
            let account = json!({ "enabled": true, "username": "admin", "password": "admin" });
            set_missing(opensearch, "basicAuth", account);
        }
        let defaults =
            json!({ "opensearchPrefix": "whizard", "logMaxAge": "7", "basicAuth": { "enabled": true } });
        merge_missing(opensearch, &defaults);
    }
    if spec["events"].is_object() {
        set_missing(&mut spec["events"], "ruler", json!({ "enabled": true, "replicas": 2 }));
    }
    set_missing(spec, "terminal", json!({ "timeout": 600 }));
    if spec["servicemesh"].is_object() {
        let gateways = json!([{ "name": "istio-ingressgateway", "enabled": false }]);
        let components = json!({ "ingressGateways": gateways, "cni": { "enabled": false } });
        set_missing(&mut spec["servicemesh"], "istio", json!({ "components": components }));
    }
    if spec["devops"]["enabled"] == true {
        let jenkins = json!({
            "jenkinsCpuReq": 0.5,
            "jenkinsCpuLim": 4,
            "jenkinsMemoryReq": "4Gi",
            "jenkinsMemoryLim": "4Gi",
            "jenkinsVolumeSize": "16Gi",
        });
        merge_missing(&mut spec["devops"], &jenkins);
    }
}

/// Sets a key that is not there, or the missing keys inside of it.
fn set_missing(into: &mut Value, key: &str, default: Value) {
    let Some(map) = into.as_object_mut() else { return };
    match map.get_mut(key) {
        Some(value) if value.is_object() => merge_missing(value, &default),
        Some(value) if !value.is_null() => {}
        _ => drop(map.insert(key.to_owned(), default)),
    }
}

fn merge_missing(into: &mut Value, defaults: &Value) {
    for (key, default) in defaults.as_object().into_iter().flatten() {
        set_missing(into, key, default.clone());
    }
}
