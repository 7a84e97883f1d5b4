//! Provides the variables of an Ansible role for its templates: top-level keys of the spec, variables from files, and facts of
//! the cluster.

use minijinja::Environment;
use serde_json::{Map, Value, json};

use super::nodes::Seen;
use super::{Registry, template};

/// Facts of the cluster, under the names that these templates use.
#[derive(Clone, Copy)]
pub(super) struct Facts<'a> {
    pub(super) kubernetes: &'a str,
    pub(super) nodes: Seen,
}

/// Adds the top-level variables of a role to `context`. A key of the spec replaces the whole value of a variable, as Ansible does
/// for variables of the command line.
pub(super) fn add(
    context: &mut Map<String, Value>,
    files: &[(String, String)],
    facts: Facts<'_>,
    registry: &Registry,
) -> Result<(), (String, String)> {
    let spec = context["spec"].as_object().cloned().unwrap_or_default();
    let ha = spec.get("enableHA") == Some(&Value::Bool(true));
    let own = json!({
        "nodeNum": facts.nodes.count,
        "logging_container_runtime": facts.nodes.runtime,
        "kubernetes_version": facts.kubernetes,
        "kube_version": facts.kubernetes,
        "master_num": if ha { "3" } else { "1" },
    });
    context.extend(spec);
    context.extend(own.as_object().cloned().unwrap_or_default());
    for (part, text) in files {
        let wrong = |why: String| (part.clone(), why);
        let variables: Map<String, Value> =
            serde_saphyr::from_str(text).map_err(|error| wrong(error.to_string()))?;
        for (name, value) in variables {
            // In Ansible, a name with a dot is an ordinary name. Here it would select a field of another value.
            if context.contains_key(&name) || name.contains('.') {
                continue;
            }
            let mut value = rendered(value, &Value::Object(context.clone()), registry)
                .map_err(|why| wrong(format!("{name}: {why}")))?;
            // The configured registry also applies to images that a controller uses. A text that is only the beginning of a name
            // is not changed.
            if let Value::String(text) = &mut value
                && name.ends_with("_repo")
                && text.contains('/')
                && !text.ends_with('/')
            {
                *text = registry.rewrite(text);
            }
            context.insert(name, value);
        }
    }
    Ok(())
}

/// Renders all texts in a value at any depth.
fn rendered(value: Value, context: &Value, registry: &Registry) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) if text.contains("{{") || text.contains("{%") => {
            template::render(&text, context, registry)?.trim().into()
        }
        Value::Object(map) => {
            let render = |(key, value)| Ok((key, rendered(value, context, registry)?));
            Value::Object(map.into_iter().map(render).collect::<Result<_, String>>()?)
        }
        other => other,
    })
}

/// Adds the filters, tests and methods of Ansible's templates.
pub(super) fn extend(environment: &mut Environment<'_>) {
    environment.add_filter("to_nice_yaml", |value: minijinja::Value, _how: minijinja::value::Kwargs| {
        serde_saphyr::to_string(&serde_json::to_value(value).unwrap_or_default())
            .map_err(|error| minijinja::Error::new(minijinja::ErrorKind::BadSerialization, error.to_string()))
    });
    environment.set_unknown_method_callback(|_state, value, method, args| {
        let (Some(text), "split") = (value.as_str(), method) else {
            return Err(minijinja::ErrorKind::UnknownMethod.into());
        };
        let (by,): (&str,) = minijinja::value::from_args(args)?;
        Ok(text.split(by).map(minijinja::Value::from).collect())
    });
    environment.add_test("version", |this: String, other: String, how: Option<String>| {
        let (this, other) = (numbers(&this), numbers(&other));
        match how.as_deref().unwrap_or("==") {
            ">=" | "ge" => this >= other,
            ">" | "gt" => this > other,
            "<=" | "le" => this <= other,
            "<" | "lt" => this < other,
            "!=" | "ne" => this != other,
            _ => this == other,
        }
    });
}

/// The numbers of a version without its suffix.
fn numbers(version: &str) -> Vec<u64> {
    let version = version.trim_start_matches('v').split(['-', '+']).next().unwrap_or_default();
    version.split('.').map_while(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {

    use super::*;

    const FILE: &str = "\
base: >-
  {% if local_registry is defined and local_registry != '' -%}
  {{ local_registry }}/
  {%- else -%}

  {%- endif %}
version: \"{%- if dev_tag is defined and dev_tag != '' -%} {{ dev_tag }} {%- else -%} v3 {%- endif %}\"
core_repo: \"{{ base }}{{ namespace_override | default('kubesphere') }}/core\"
core_tag: \"{{ version }}\"
quay_repo: \"{{ 'quay.io/' }}\"
other_repo: \"{{ quay_repo }}other/program\"
monitoring: {prometheus: {replicas: 2}}
images: {core: {repo: '{{ core_repo }}', sum: '{{ nothing | default(None) }}'}}
etcd.port: 2379
";

    fn context(spec: &Value, registry: &Registry) -> Map<String, Value> {
        let mut context = json!({ "spec": spec }).as_object().cloned().unwrap();
        let facts = Facts { kubernetes: "v1.36.0", nodes: Seen { count: 2, runtime: "crio" } };
        add(&mut context, &[("release/images.yaml".to_owned(), FILE.to_owned())], facts, registry).unwrap();
        context
    }

    #[test]
    fn variables_are_made_of_those_before_them() {
        for (spec, registry, repository, tag) in [
            (json!({}), json!({}), "kubesphere/core", "v3"),
            (json!({"dev_tag": "v9"}), json!({}), "kubesphere/core", "v9"),
            (
                json!({}),
                json!({"local_registry": "r:5000", "namespace_override": "ks"}),
                "r:5000/ks/core",
                "v3",
            ),
        ] {
            let context = context(&spec, &Registry::of(&registry));
            assert_eq!(
                (&context["core_repo"], &context["core_tag"]),
                (&json!(repository), &json!(tag)),
                "{spec}, {registry}"
            );
            assert_eq!(context["images"]["core"]["repo"], repository, "{spec}, {registry}");
            assert_eq!(
                (&context["nodeNum"], &context["logging_container_runtime"]),
                (&json!(2), &json!("crio")),
                "{spec}, {registry}"
            );
        }
    }

    #[test]
    fn a_name_of_two_variables_gets_the_users_registry_once() {
        for (registry, expected) in [
            (json!({}), "quay.io/other/program"),
            (json!({"local_registry": "r:5000"}), "r:5000/other/program"),
            (json!({"local_registry": "r:5000", "namespace_override": "ks"}), "r:5000/ks/program"),
        ] {
            assert_eq!(context(&json!({}), &Registry::of(&registry))["other_repo"], expected, "{registry}");
        }
    }

    #[test]
    fn a_key_of_the_spec_stands_for_the_whole_variable() {
        let own = context(&json!({"monitoring": {"storageClass": "x"}}), &Registry::default());
        assert_eq!(own["monitoring"], json!({"storageClass": "x"}));
        assert_eq!(context(&json!({}), &Registry::default())["monitoring"]["prometheus"]["replicas"], 2);
    }

    #[test]
    fn filters_of_ansible_are_known() {
        for (text, expected) in [
            ("{% if v is version('v1.25.0', '>=') %}new{% else %}old{% endif %}", "new"),
            ("{% if v is version('v1.36.10', '<') %}older{% endif %}", "older"),
            ("{{ {'a': 1} | to_nice_yaml(indent=2) | trim }}", "a: 1"),
            ("{% for part in v.split('.') %}{{ part }} {% endfor %}", "v1 36 0+k3s1 "),
        ] {
            println!("case {text}");
            let context = json!({ "v": "v1.36.0+k3s1" });
            assert_eq!(template::render(text, &context, &Registry::default()).unwrap(), expected, "{text}");
        }
    }
}
