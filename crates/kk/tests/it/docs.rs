//! Compares pages of the documentation with the code that they describe.
//!
//! `UPDATE_DOCS=1 cargo test -p kk --test it docs` updates the tables of docs/configuration.md and docs/cli.md, and the default
//! version of Kubernetes in config-samples/.

use std::{collections::BTreeSet, fs, path::PathBuf};

use clap::{Arg, Command, CommandFactory};
use kk::{args::Cli, exit::ExitStatus};
use kk_config::{KubeVersion, Overrides, SampleStyle, load, sample};
use serde_json::Value;

const BEGIN: &str = "<!-- written by a test, see crates/kk/tests/it/docs.rs -->\n";
const END: &str = "<!-- end of what is written by a test -->\n";

fn file(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn read(path: &str) -> String {
    fs::read_to_string(file(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The fields that are named in the warning about a file with all of KubeKey's fields.
fn without_effect() -> BTreeSet<String> {
    let text = read("crates/kk-config/tests/kubekey-full.yaml");
    let loaded = load("kubekey-full.yaml", &text, &Overrides::default()).expect("the file is valid");
    let warnings =
        loaded.warnings.iter().filter_map(|warning| warning.message.strip_prefix("without effect yet: "));
    warnings.flat_map(|names| names.split(", ")).map(str::to_owned).collect()
}

/// A row for each field below `schema`; a field without effect stands for everything below it. A map whose values have fields
/// gets a row for itself, and a row for each of these fields after a `*`.
fn rows(root: &Value, schema: &Value, path: &str, without: &BTreeSet<String>, out: &mut Vec<String>) {
    let Some(fields) = resolve(root, schema)["properties"].as_object() else { return };
    for (name, field) in fields {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let below = resolve(root, field);
        let is_object = below["properties"].is_object();
        let of_map = &below["additionalProperties"];
        let no_effect = without.contains(&path);
        if !is_object || no_effect {
            let note = if no_effect { "**No effect yet.** " } else { "" };
            let about = field["description"].as_str().unwrap_or_default().replace(['\n', '|'], " ");
            out.push(format!("| `{path}` | {} | {note}{about} |\n", default(&field["default"])));
        }
        if is_object && !no_effect {
            rows(root, field, &path, without, out);
        }
        if of_map.is_object() && !no_effect {
            rows(root, of_map, &format!("{path}.*"), without, out);
        }
    }
}

/// The schema of a reference, of a list's items, or of an optional value.
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

/// Compares the text between the marks of a page with `text`, or replaces it.
fn hold(path: &str, text: &str) {
    let page = read(path);
    let (before, rest) = page.split_once(BEGIN).expect("the page has the mark at which the text begins");
    let (shown, after) = rest.split_once(END).expect("the page has the mark at which the text ends");
    compare_or_write(path, shown == text, &format!("{before}{BEGIN}{text}{END}{after}"));
}

/// Fails if a file is out of date. With `UPDATE_DOCS=1`, writes its content instead.
fn compare_or_write(path: &str, is_current: bool, content: &str) {
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(file(path), content).expect("the file is writable");
    } else {
        assert!(is_current, "{path} is out of date; run this test with UPDATE_DOCS=1");
    }
}

/// A section for each command without subcommands: its description and its options.
fn sections(command: &Command, path: &str) -> String {
    if command.has_subcommands() {
        let inner = command.get_subcommands().filter(|inner| inner.get_name() != "help");
        return inner.map(|inner| sections(inner, &format!("{path} {}", inner.get_name()))).collect();
    }
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let shown = |arg: &&Arg| !matches!(arg.get_id().as_str(), "help" | "version");
    let options: String = command.get_arguments().filter(shown).map(option).collect();
    let head = if options.is_empty() { "" } else { "| option | default | |\n| --- | --- | --- |\n" };
    let end = if options.is_empty() { "" } else { "\n" };
    format!("### {path}\n\n{about}.\n\n{head}{options}{end}")
}

/// `| -f, --filename FILE | default | help |`, with typed text marked as code.
fn option(arg: &Arg) -> String {
    let code = |text: String| format!("`{text}`");
    let takes_value = arg.get_action().takes_values();
    let value = arg.get_value_names().filter(|_| takes_value).map(|names| names[0].to_string());
    let long = match (arg.get_long(), value) {
        (Some(long), Some(value)) => format!("--{long} {value}"),
        (Some(long), None) => format!("--{long}"),
        (None, value) => value.unwrap_or_default(),
    };
    let short = arg.get_short().map(|short| format!("-{short}"));
    let names: Vec<String> = short.into_iter().chain([long]).map(code).collect();
    let defaults = arg.get_default_values().iter().filter(|_| takes_value);
    let default: String = defaults.map(|value| code(value.to_string_lossy().into_owned())).collect();
    let words = arg.get_possible_values().into_iter().filter(|_| takes_value);
    let words: Vec<String> = words.map(|word| code(word.get_name().to_owned())).collect();
    let words = if words.is_empty() { String::new() } else { format!(": {}", words.join(", ")) };
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    format!("| {} | {default} | {help}{words} |\n", names.join(", "))
}

#[test]
fn the_page_on_the_command_line_has_every_option() {
    let mut command = Cli::command();
    command.build();
    let text = format!("{}## All events\n\n{}", sections(&command, "kk"), events());
    hold("docs/cli.md", &text);
    assert!(text.contains("### kk create cluster\n") && text.contains("| `-f`, `--filename FILE` |"));
    assert!(text.contains("| `finding` | `severity`, `host`, `message`, `hint` |"), "{text}");
}

/// A row for each kind of event, with its fields. The schema of the type describes its serialised form.
fn events() -> String {
    let schema = schemars::generate::SchemaSettings::draft2020_12().into_generator();
    let schema: Value = schema.into_root_schema_for::<kk_engine::EventKind>().into();
    let kinds = schema["oneOf"].as_array().expect("an event is one of several kinds");
    let rows: Vec<String> = kinds
        .iter()
        .map(|kind| {
            let mut names = Vec::new();
            fields(&schema, kind, &mut names);
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            let name = kind["properties"]["event"]["const"].as_str().expect("a kind has a name");
            let about = kind["description"].as_str().unwrap_or_default().replace('\n', " ");
            format!("| `{name}` | {} | {about} |\n", names.join(", "))
        })
        .collect();
    format!("| event | fields | |\n| --- | --- | --- |\n{}\n", rows.concat())
}

/// The names of all fields that an object of this schema may have, without the tag.
fn fields(root: &Value, schema: &Value, names: &mut Vec<String>) {
    for name in schema["properties"].as_object().into_iter().flat_map(serde_json::Map::keys) {
        if name != "event" && !names.contains(name) {
            names.push(name.clone());
        }
    }
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        fields(root, &root["$defs"][name], names);
    }
    for several in ["allOf", "anyOf", "oneOf"] {
        schema[several].as_array().into_iter().flatten().for_each(|inner| fields(root, inner, names));
    }
}

#[test]
fn the_page_on_configuration_names_every_field() {
    let schema = serde_json::to_value(kk_config::schema()).expect("a schema is JSON");
    let mut table = vec!["| field | default | |\n".to_owned(), "| --- | --- | --- |\n".to_owned()];
    rows(&schema, &schema, "", &without_effect(), &mut table);
    let table = table.concat();

    hold("docs/configuration.md", &table);
    assert!(
        table.contains("| `spec.network.plugin` |")
            && table.contains("| `spec.storage` |  | **No effect yet.**")
            && table.contains("| `spec.registry.auths.*.certsPath` |")
    );
}

#[test]
fn the_samples_specify_the_default_version() {
    for style in SampleStyle::ALL {
        let path = format!("config-samples/{}", style.file_name());
        let text = sample("sample", KubeVersion::default(), style, style.file_name());
        let text = text.expect("the sample is valid");
        compare_or_write(&path, read(&path) == text, &text);
    }
}

#[test]
fn the_page_on_the_command_line_names_every_exit_code() {
    let page = read("docs/cli.md");
    for status in ExitStatus::ALL {
        assert!(page.contains(&format!("\n| {} | ", status.code())), "{status:?}");
    }
}

/// Command lines of kk in a page: in code blocks, and between backticks.
fn command_lines(page: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut text = String::new();
    for (i, part) in page.split("\n```").enumerate() {
        if i % 2 == 0 {
            text += &part.replace('\n', " ");
        } else {
            let typed =
                part.lines().map(|line| line.trim_start_matches("$ ").split('#').next().unwrap_or_default());
            lines.extend(typed.map(str::to_owned));
        }
    }
    lines.extend(text.split('`').skip(1).step_by(2).map(str::to_owned));
    lines.retain(|line| line.starts_with("kk "));
    lines
}

/// The unknown word of a command line, if there is one. Placeholders are permitted as values.
fn unknown_part(root: &Command, line: &str) -> Option<String> {
    let mut command = root;
    let mut words = line.split_whitespace().skip(1).peekable();
    while let Some(below) = words.peek().and_then(|word| command.find_subcommand(word)) {
        command = below;
        words.next();
    }
    if command.has_subcommands() {
        return Some(words.next().unwrap_or("a command").to_owned());
    }
    let is_known = |word: &str| {
        command.get_arguments().any(|arg| {
            let long = arg.get_long().is_some_and(|long| word.strip_prefix("--") == Some(long));
            long || arg.get_short().is_some_and(|short| word.strip_prefix('-') == Some(&short.to_string()))
        })
    };
    let option = |word: &&str| word.starts_with('-') && *word != "-";
    words.filter(option).find(|word| !is_known(word)).map(str::to_owned)
}

#[test]
fn commands_in_the_documentation_are_there() {
    let mut root = Cli::command();
    root.build();
    // Commands of KubeKey, named where the differences are described.
    let not_here = ["kk init os", "kk alpha"];
    let mut count = 0;
    for page in [
        "README.md",
        "docs/cli.md",
        "docs/configuration.md",
        "docs/day-2.md",
        "docs/kubesphere.md",
        "docs/offline.md",
    ] {
        for line in command_lines(&read(page)).iter().filter(|line| !not_here.contains(&line.as_str())) {
            assert_eq!(unknown_part(&root, line), None, "{page}: {line}");
            count += 1;
        }
    }
    assert!(count > 100, "only {count} commands were found");
    assert_eq!(unknown_part(&root, "kk upgrade -f FILE --with-etc 3.6.14").as_deref(), Some("--with-etc"));
}
