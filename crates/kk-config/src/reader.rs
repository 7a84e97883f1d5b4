//! Reads a positioned tree by a JSON schema. It reports every unknown key, wrong type, unknown word and number out of range at
//! its position, and converts the rest into the JSON that serde reads.
//!
//! The module `schema` supplies the schema, so only the features of JSON schema that schemars generates are supported. Scalars
//! are resolved by the wanted type, because a text may look like a number.

use crate::findings::Findings;
use crate::typing;
use crate::v1alpha2;
use crate::yaml::{Key, Node, Span, Value};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeSet;

/// The JSON of the tree without wrong values; these are reported to `findings`.
pub(crate) fn read(root: &Node, schema: &Json, findings: &mut Findings<'_>) -> Json {
    Reader { schema, keys: typing::keys(schema), findings }.value(root, schema, "")
}

struct Reader<'a, 'f> {
    schema: &'a Json,
    /// All keys anywhere in the schema.
    keys: BTreeSet<&'a str>,
    findings: &'a mut Findings<'f>,
}

impl<'a> Reader<'a, '_> {
    /// `Null` for an absent or wrong value.
    fn value(&mut self, node: &Node, schema: &'a Json, path: &str) -> Json {
        if schema == &Json::Bool(true) {
            return node.to_json();
        }
        if node.is_null() {
            return Json::Null;
        }
        let schema = self.choose(schema, node);
        if let Some(words) = words(schema) {
            return self.word(node, &words, path);
        }
        match type_of(schema) {
            "object" => self.object(node, schema, path),
            "array" => self.array(node, schema, path),
            "string" => match node.text() {
                Some(text) => json!(text),
                None => self.wrong_type(node, "a text", path),
            },
            "boolean" => match node.as_bool() {
                Some(bool) => json!(bool),
                None => self.wrong_type(node, "true or false", path),
            },
            "integer" => self.integer(node, schema, path),
            // Any value is accepted.
            _ => node.to_json(),
        }
    }

    /// Follows references. Of several alternatives, chooses the one for this kind of node (not `null`, because absent values are
    /// handled earlier).
    fn choose(&self, schema: &'a Json, node: &Node) -> &'a Json {
        if let Some(reference) = schema["$ref"].as_str() {
            let target = self.schema.pointer(reference.trim_start_matches('#'));
            return self.choose(target.expect("schemars writes the definitions it refers to"), node);
        }
        let Some(alternatives) = schema["anyOf"].as_array() else { return schema };
        let mut fitting =
            alternatives.iter().filter(|one| one["type"] != "null").map(|one| self.choose(one, node));
        let first = fitting.next().expect("an alternative other than null");
        std::iter::once(first).chain(fitting).find(|one| kind_fits(node, one)).unwrap_or(first)
    }

    fn object(&mut self, node: &Node, schema: &'a Json, path: &str) -> Json {
        let Value::Map(entries) = &node.value else {
            return self.wrong_type(node, "a map of keys and values", path);
        };
        let mut object = Map::new();
        let properties = schema["properties"].as_object();
        for (key, value) in entries {
            // A key for anchors, as in other tools. In maps with keys of the user, such as labels, it is a value.
            if properties.is_some() && key.text.starts_with("x-") {
                continue;
            }
            let inner = join(path, &key.text);
            let known = properties.and_then(|known| known.get(&key.text));
            let Some(schema) =
                known.or_else(|| schema.get("additionalProperties").filter(|more| more != &&json!(false)))
            else {
                self.unknown_key(key, value.span, properties, path);
                continue;
            };
            if self.is_secret(schema, value) {
                self.check_secret(key, value, names_login_key(entries));
            }
            let json = self.value(value, schema, &inner);
            // In a struct, an empty text means "not set", as in KubeKey; in a map of texts it is a value.
            let absent = if known.is_some() {
                json.is_null() || json == ""
            } else {
                json.is_null() && schema != &json!(true)
            };
            if !absent {
                object.insert(key.text.clone(), json);
            } else if known.is_none() && type_of(schema) == "string" && value.is_null() {
                object.insert(key.text.clone(), json!(""));
            }
        }
        Json::Object(object)
    }

    fn is_secret(&self, schema: &'a Json, node: &Node) -> bool {
        self.choose(schema, node)["format"] == "password"
    }

    /// Checks for a secret that YAML reads as empty, or only in part. `has_login_key`: the login does not need the secret.
    fn check_secret(&mut self, key: &Key, value: &Node, has_login_key: bool) {
        let line: Vec<char> = self.findings.line(key.span.line).chars().collect();
        let from = |column: usize| line.iter().skip(column - 1).collect::<String>();
        let written = from(key.span.end_column);
        let written =
            written.trim_start_matches(['"', '\'']).trim_start().trim_start_matches(':').trim_start();
        let name = &key.text;
        let quotes = "put a secret with special characters into quotes";
        if let Some(comment) = written.strip_prefix('#').filter(|_| value.is_null()) {
            let message = format!("`{name}` is empty: the text after `#` is a comment");
            let hint = format!("{quotes}, or remove the line");
            // A login with a key needs no password, but sudo still requires its own.
            let is_needed = !has_login_key || name == "sudoPassword";
            if is_needed && comment.starts_with(|c: char| !c.is_whitespace()) {
                self.findings.error(key.span, message, hint);
            } else {
                self.findings.warning(key.span, message, hint);
            }
        } else if let Some(anchor) = written.strip_prefix('&') {
            let anchor: String = anchor.chars().take_while(|c| c.is_alphanumeric()).collect();
            if value.is_null() {
                let message = format!("`{name}` is empty: the text after `&` is the name of a YAML anchor");
                self.findings.error(key.span, message, quotes);
            } else if !self.findings.contains(&format!("*{anchor}")) {
                let message = format!("`{name}` begins with a YAML anchor, which is not part of it");
                self.findings.warning(key.span, message, quotes);
            }
        } else if value.is_plain()
            && value.span.end_line == key.span.line
            && from(value.span.end_column).trim_start().starts_with('#')
        {
            let message = format!("`{name}` ends before `#`: the rest is a comment");
            self.findings.warning(key.span, message, quotes);
        }
    }

    fn array(&mut self, node: &Node, schema: &'a Json, path: &str) -> Json {
        let items = match &node.value {
            Value::List(items) => items,
            Value::Map(entries) if entries.iter().any(|(key, _)| key.text.starts_with('-')) => {
                let hint = "write `- key: value`, with a blank between";
                self.findings.structure_error(node.span, "a blank is missing after `-`", hint);
                return Json::Null;
            }
            _ => return self.wrong_type(node, "a list", path),
        };
        let mut array = Vec::new();
        for (i, item) in items.iter().enumerate() {
            if item.is_null() {
                let message = format!("an item of `{path}` is empty");
                self.findings.structure_error(item.span, message, "fill it in or remove the `-`");
            }
            let schema = self.choose(&schema["items"], item);
            let json = self.value(item, schema, &format!("{path}[{i}]"));
            // A wrong item is replaced, not left out, because checks find positions by index.
            array.push(if json.is_null() { empty(type_of(schema)) } else { json });
        }
        Json::Array(array)
    }

    fn integer(&mut self, node: &Node, schema: &Json, path: &str) -> Json {
        let Some(number) = node.as_integer() else {
            return self.wrong_type(node, "a whole number", path);
        };
        let smallest = schema["minimum"].as_i64().unwrap_or(i64::MIN);
        let largest = schema["maximum"].as_i64().unwrap_or(if schema["format"] == "uint32" {
            u32::MAX.into()
        } else {
            i64::MAX
        });
        if (smallest..=largest).contains(&number) {
            return json!(number);
        }
        let range = if largest >= i64::from(u32::MAX) {
            format!("at least {smallest}")
        } else {
            format!("between {smallest} and {largest}")
        };
        self.findings.structure_error(
            node.span,
            format!("`{path}` cannot be {number}"),
            format!("a number {range}"),
        );
        Json::Null
    }

    fn word(&mut self, node: &Node, words: &[&str], path: &str) -> Json {
        let Some(text) = node.text() else {
            return self.wrong_type(node, &format!("one of {}", words.join(", ")), path);
        };
        if text.is_empty() || words.contains(&text) {
            return json!(text);
        }
        // A hint must not suggest a word that is refused afterwards.
        let usable: Vec<&str> =
            words.iter().copied().filter(|word| !v1alpha2::is_refused(path, word)).collect();
        let hint = did_you_mean(text, usable.iter().copied()).unwrap_or_else(|| match usable.as_slice() {
            [] => format!("remove `{path}`: none of its values can be used yet"),
            usable => {
                let alternative = v1alpha2::alternative(path).map(|text| format!("; {text}"));
                format!("one of: {}{}", usable.join(", "), alternative.unwrap_or_default())
            }
        });
        self.findings.structure_error(node.span, format!("`{path}` cannot be `{text}`"), hint);
        Json::Null
    }

    fn wrong_type(&mut self, node: &Node, wanted: &str, path: &str) -> Json {
        let subject = if path.is_empty() { "the document".to_owned() } else { format!("`{path}`") };
        let (found, hint) = match &node.value {
            Value::List(_) => ("a list".to_owned(), String::new()),
            Value::Map(_) => ("a map".to_owned(), String::new()),
            Value::Scalar { text, .. }
                if wanted != "a list"
                    && typing::key_without_blank(text, |key| self.keys.contains(key)).is_some() =>
            {
                let key = text.split(':').next().unwrap_or_default();
                self.findings.typing_error(
                    node.span,
                    format!("a blank is missing after `{key}:`"),
                    format!("write a blank between `{key}:` and its value"),
                );
                return Json::Null;
            }
            Value::Scalar { text, .. } if wanted == "a list" => {
                (format!("`{text}`"), format!("write `[{text}]` or one `- item` a line"))
            }
            Value::Scalar { text, plain: true } => (format!("`{text}`"), String::new()),
            Value::Scalar { text, plain: false } => {
                let is_only_quoted = text.parse::<i64>().is_ok() || text.parse::<bool>().is_ok();
                let hint = if is_only_quoted { "write it without quotes" } else { "" };
                (format!("the text `{text}`"), hint.to_owned())
            }
        };
        self.findings.structure_error(node.span, format!("{subject} must be {wanted}, not {found}"), hint);
        Json::Null
    }

    fn unknown_key(&mut self, key: &Key, value: Span, properties: Option<&Map<String, Json>>, path: &str) {
        let Key { text: key, span } = key;
        if let Some(key) =
            typing::key_without_blank(key, |key| properties.is_some_and(|known| known.contains_key(key)))
        {
            let message = format!("a blank is missing after `{key}:`");
            let hint = format!("write a blank between `{key}:` and its value");
            return self.findings.unknown_key(*span, value, message, hint);
        }
        if key.starts_with('-') {
            let hint = "write `- key: value`, with a blank between";
            return self.findings.unknown_key(*span, value, "a blank is missing after `-`", hint);
        }
        let known = || properties.into_iter().flat_map(Map::keys).map(String::as_str);
        let hint = || {
            did_you_mean(key, known())
                .or_else(|| self.home_of(key).map(|home| belongs(key, &home)))
                .unwrap_or_else(|| format!("known here: {}", known().collect::<Vec<_>>().join(", ")))
        };
        let hint = if self.findings.is_full() { String::new() } else { hint() };
        let place = if path.is_empty() { "the document".to_owned() } else { format!("`{path}`") };
        self.findings.unknown_key(*span, value, format!("unknown field `{key}` in {place}"), hint);
    }

    /// The path of the only object under `spec` that has this key.
    fn home_of(&self, key: &str) -> Option<String> {
        let mut homes = Vec::new();
        self.collect_homes(key, self.schema, "", &mut homes);
        (homes.len() == 1).then(|| homes.remove(0))
    }

    fn collect_homes(&self, key: &str, schema: &'a Json, path: &str, homes: &mut Vec<String>) {
        let Some(properties) = schema["properties"].as_object() else { return };
        for (name, inner) in properties {
            if name == key {
                homes.push(path.to_owned());
            }
            let inner = self.choose(inner, &Node::nowhere());
            let (inner, suffix) = match type_of(inner) {
                "array" => (self.choose(&inner["items"], &Node::nowhere()), "[]"),
                _ => (inner, ""),
            };
            self.collect_homes(key, inner, &format!("{}{suffix}", join(path, name)), homes);
        }
    }
}

/// Whether a map contains a private key for the login.
fn names_login_key(entries: &[(Key, Node)]) -> bool {
    let is_given = |value: &Node| !value.is_null() && value.text() != Some("");
    entries
        .iter()
        .any(|(key, value)| matches!(key.text.as_str(), "privateKey" | "privateKeyPath") && is_given(value))
}

fn belongs(key: &str, home: &str) -> String {
    if home.is_empty() {
        format!("`{key}` belongs at the outermost level, without indentation")
    } else {
        format!("`{key}` belongs in `{home}`")
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// The type of a schema; `["string", "null"]` is `string`.
fn type_of(schema: &Json) -> &str {
    match &schema["type"] {
        Json::Array(types) => {
            types.iter().filter_map(Json::as_str).find(|&one| one != "null").unwrap_or_default()
        }
        one => one.as_str().unwrap_or_default(),
    }
}

fn kind_fits(node: &Node, schema: &Json) -> bool {
    match &node.value {
        Value::Scalar { .. } => !matches!(type_of(schema), "array" | "object"),
        Value::List(_) => type_of(schema) == "array",
        Value::Map(_) => type_of(schema) == "object",
    }
}

/// The replacement for a wrong item of a list, so that serde accepts the rest.
fn empty(kind: &str) -> Json {
    match kind {
        "object" => json!({}),
        "array" => json!([]),
        _ => json!(""),
    }
}

/// The words of an enumeration: `enum`, or `oneOf` with one constant each if the words have descriptions.
fn words(schema: &Json) -> Option<Vec<&str>> {
    let alternatives = schema["enum"].as_array().or_else(|| schema["oneOf"].as_array())?;
    Some(alternatives.iter().filter_map(|one| one.as_str().or_else(|| one["const"].as_str())).collect())
}

/// A hint if a known word is similar: another case, or at most a third of the letters wrong.
pub(crate) fn did_you_mean<'k>(word: &str, known: impl Iterator<Item = &'k str>) -> Option<String> {
    let lower = word.to_lowercase();
    known
        .map(|known| (strsim::damerau_levenshtein(&lower, &known.to_lowercase()), known))
        .min()
        .filter(|(distance, known)| *distance <= known.chars().count().max(3) / 3)
        .map(|(_, known)| format!("did you mean `{known}`?"))
}
