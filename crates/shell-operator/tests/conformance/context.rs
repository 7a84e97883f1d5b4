//! Texts of binding contexts, and filters.

use std::collections::BTreeMap;
use std::sync::Arc;

use jaq_json::Val;
use serde::Deserialize;
use serde_json::Value;
use shell_operator::config::{ConfigVersion, WatchEvent};
use shell_operator::context::{self, BindingContext, Event, Identity, Item, Snapshots, collapse_groups};
use shell_operator::jq::Filter;
use shell_operator::json::{self, Numbers};

use crate::value::{refused, same};

/// The input of a run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    #[serde(default)]
    v0: bool,
    /// Objects of bindings.
    #[serde(default)]
    snapshots: BTreeMap<String, Vec<Known>>,
    contexts: Vec<One>,
    /// The whole file, without its newline.
    text: String,
}

/// An object as a binding keeps it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Known {
    object: Value,
    jq_filter: Option<String>,
    #[serde(default)]
    only_result: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct One {
    binding: String,
    /// `onStartup`, `Schedule`, `Synchronization`, or `Added`, `Modified`, `Deleted` with an object.
    event: String,
    object: Option<Known>,
    group: Option<String>,
    #[serde(default)]
    include: Vec<String>,
}

struct Table(BTreeMap<String, Vec<Item>>);

impl Snapshots for Table {
    fn items(&self, binding: &str) -> Vec<Item> {
        self.0.get(binding).cloned().unwrap_or_default()
    }
}

impl File {
    pub(crate) fn run(&self) -> Result<(), String> {
        let mut table = BTreeMap::new();
        for (binding, objects) in &self.snapshots {
            let items: Result<Vec<Item>, String> = objects.iter().map(Known::item).collect();
            table.insert(binding.clone(), items?);
        }
        let contexts: Result<Vec<BindingContext>, String> = self.contexts.iter().map(One::context).collect();
        let version = if self.v0 { ConfigVersion::V0 } else { ConfigVersion::V1 };
        let mut text = Vec::new();
        context::write(&mut text, &collapse_groups(contexts?), version, &Table(table)).unwrap();
        same(String::from_utf8(text).unwrap(), format!("{}\n", self.text.trim()))
    }
}

impl Known {
    fn item(&self) -> Result<Item, String> {
        let value = parse(&self.object.to_string())?;
        let object = json::to_vec(&value, Numbers::Exact).map_err(|error| error.to_string())?;
        let filter_result = match &self.jq_filter {
            None => None,
            Some(filter) => Some(filter_result(filter, value)?.into()),
        };
        Ok(Item { object: (!self.only_result).then(|| object.into()), filter_result })
    }
}

impl One {
    fn context(&self) -> Result<BindingContext, String> {
        let change = WatchEvent::ALL.into_iter().find(|event| event.as_str() == self.event);
        let event = match (self.event.as_str(), change) {
            ("onStartup", _) => Event::OnStartup,
            ("Schedule", _) => Event::Schedule,
            ("Synchronization", _) => Event::Synchronization,
            (_, Some(change)) => {
                let known = self.object.as_ref().ok_or("an event needs an object")?;
                let at = |path: &str| known.object.pointer(path).and_then(Value::as_str).unwrap_or_default();
                let identity = Identity {
                    kind: at("/kind").to_owned(),
                    namespace: at("/metadata/namespace").to_owned(),
                    name: at("/metadata/name").to_owned(),
                };
                Event::Object { change, item: known.item()?, identity: Arc::new(identity) }
            }
            (other, None) => return Err(format!("unknown event {other}")),
        };
        Ok(BindingContext {
            binding: self.binding.as_str().into(),
            event,
            group: self.group.as_deref().map(Into::into),
            snapshots: self.include.clone().into(),
        })
    }
}

/// A filter on a text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Jq {
    filter: String,
    input: String,
    /// The `filterResult`, byte for byte.
    result: Option<String>,
    /// Parts of the error instead.
    error: Option<Vec<String>>,
}

impl Jq {
    pub(crate) fn run(&self) -> Result<(), String> {
        let result = parse(&self.input).and_then(|input| {
            let before = input.clone();
            let result = filter_result(&self.filter, input.clone());
            same(input, before)?;
            result
        });
        match (&self.result, &self.error) {
            (Some(expected), None) => same(String::from_utf8(result?).unwrap(), expected.clone()),
            (None, Some(parts)) => refused(result, parts),
            _ => Err("a filter has either a result or an error".to_owned()),
        }
    }
}

fn parse(text: &str) -> Result<Val, String> {
    json::parse(text.as_bytes()).map_err(|error| error.to_string())
}

fn filter_result(filter: &str, input: Val) -> Result<Vec<u8>, String> {
    let filter = Filter::compile(filter).map_err(|error| error.to_string())?;
    filter.filter_result(input).map_err(|error| error.to_string())
}
