//! Pages that repeat what the code says, held to it.
//!
//! `UPDATE_DOCS=1 cargo test -p kk --test docs` writes the table of docs/configuration.md anew.

use std::{collections::BTreeSet, fs, path::PathBuf};

use kk::exit::ExitStatus;
use kk_config::{Overrides, load};
use serde_json::Value;

const BEGIN: &str = "<!-- fields: written by a test, see crates/kk/tests/docs.rs -->\n";
const END: &str = "<!-- end of fields -->\n";

fn file(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn read(path: &str) -> String {
    fs::read_to_string(file(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The fields that the warning about a file with all of KubeKey's fields names.
fn without_effect() -> BTreeSet<String> {
    let text = read("crates/kk-config/tests/kubekey-full.yaml");
    let loaded = load("kubekey-full.yaml", &text, &Overrides::default()).expect("the file is valid");
    let warnings =
        loaded.warnings.iter().filter_map(|warning| warning.message.strip_prefix("without effect yet: "));
    warnings.flat_map(|names| names.split(", ")).map(str::to_owned).collect()
}

/// A row for each field below `schema`; a field without effect stands for all that is below it.
fn rows(root: &Value, schema: &Value, path: &str, without: &BTreeSet<String>, out: &mut Vec<String>) {
    let Some(fields) = resolve(root, schema)["properties"].as_object() else { return };
    for (name, field) in fields {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let below = resolve(root, field);
        let is_object = below["properties"].is_object();
        let no_effect = without.contains(&path);
        if !is_object || no_effect {
            let note = if no_effect { "**No effect yet.** " } else { "" };
            let about = field["description"].as_str().unwrap_or_default().replace(['\n', '|'], " ");
            out.push(format!("| `{path}` | {} | {note}{about} |\n", default(&field["default"])));
        }
        if is_object && !no_effect {
            rows(root, field, &path, without, out);
        }
    }
}

/// The schema behind a reference, of a list's items, or of an optional value.
fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return &root["$defs"][name];
    }
    if schema["items"].is_object() {
        return resolve(root, &schema["items"]);
    }
    let options = schema["anyOf"].as_array().into_iter().flatten();
    let mut options = options.filter(|option| option["type"] != "null");
    options.next().map_or(schema, |option| resolve(root, option))
}

fn default(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) if text.is_empty() => String::new(),
        Value::Array(list) if list.is_empty() => String::new(),
        Value::Object(map) if map.is_empty() => String::new(),
        Value::String(text) => format!("`{text}`"),
        other => format!("`{other}`"),
    }
}

#[test]
fn the_page_on_configuration_names_every_field() {
    let schema = serde_json::to_value(kk_config::schema()).expect("a schema is JSON");
    let mut table = vec!["| field | default | |\n".to_owned(), "| --- | --- | --- |\n".to_owned()];
    rows(&schema, &schema, "", &without_effect(), &mut table);
    let table = table.concat();

    let page = read("docs/configuration.md");
    let (before, rest) = page.split_once(BEGIN).expect("the page has the mark at which the table begins");
    let (shown, after) = rest.split_once(END).expect("the page has the mark at which the table ends");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let text = format!("{before}{BEGIN}{table}{END}{after}");
        fs::write(file("docs/configuration.md"), text).expect("the page is writable");
    } else {
        assert!(shown == table, "docs/configuration.md is out of date; run this test with UPDATE_DOCS=1");
    }
    assert!(
        table.contains("| `spec.network.plugin` |")
            && table.contains("| `spec.addons` |  | **No effect yet.**")
    );
}

#[test]
fn the_page_on_the_command_line_names_every_exit_code() {
    let page = read("docs/cli.md");
    for status in ExitStatus::ALL {
        assert!(page.contains(&format!("\n| {} | ", status.code())), "{status:?}");
    }
}
