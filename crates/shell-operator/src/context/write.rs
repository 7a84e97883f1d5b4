//! The text of binding contexts: keys in alphabetical order, no spaces, one newline at the end.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::{BindingContext, Event, Item};
use crate::config::ConfigVersion;
use crate::json::write_string;

/// The source of the objects of a hook's kubernetes bindings.
pub trait Snapshots {
    /// All objects of the binding, in order; empty when there is no such binding.
    fn items(&self, binding: &str) -> Vec<Item>;
}

/// Writes `contexts` in the form of `version`.
pub fn write(
    out: &mut impl Write,
    contexts: &[BindingContext],
    version: ConfigVersion,
    snapshots: &impl Snapshots,
) -> io::Result<()> {
    let mut cache = Cache { source: snapshots, read: BTreeMap::new() };
    out.write_all(b"[")?;
    for (position, context) in contexts.iter().enumerate() {
        if position > 0 {
            out.write_all(b",")?;
        }
        match version {
            ConfigVersion::V0 => write_v0(out, context)?,
            ConfigVersion::V1 => write_v1(out, context, &mut cache)?,
        }
    }
    out.write_all(b"]\n")
}

/// Each snapshot is read once for a run.
struct Cache<'a, S> {
    source: &'a S,
    read: BTreeMap<String, Vec<Item>>,
}

impl<S: Snapshots> Cache<'_, S> {
    fn items(&mut self, binding: &str) -> &[Item] {
        let source = self.source;
        self.read.entry(binding.to_owned()).or_insert_with(|| source.items(binding))
    }
}

fn write_v0(out: &mut impl Write, context: &BindingContext) -> io::Result<()> {
    out.write_all(b"{\"binding\":")?;
    string(out, &context.binding)?;
    if let Event::Object { change, identity, .. } = &context.event {
        for (key, value) in [
            ("resourceEvent", change.as_v0()),
            ("resourceKind", &identity.kind),
            ("resourceName", &identity.name),
            ("resourceNamespace", &identity.namespace),
        ] {
            write!(out, ",\"{key}\":")?;
            string(out, value)?;
        }
    }
    out.write_all(b"}")
}

fn write_v1(
    out: &mut impl Write,
    context: &BindingContext,
    cache: &mut Cache<'_, impl Snapshots>,
) -> io::Result<()> {
    out.write_all(b"{\"binding\":")?;
    string(out, &context.binding)?;
    let kind = if context.is_grouped() {
        out.write_all(b",\"groupName\":")?;
        string(out, context.group.as_deref().unwrap_or_default())?;
        write_snapshots(out, context, cache)?;
        "Group"
    } else {
        write_event(out, context, cache)?
    };
    if context.event != Event::OnStartup {
        write!(out, ",\"type\":\"{kind}\"")?;
    }
    if let (Event::Object { change, .. }, "Event") = (&context.event, kind) {
        write!(out, ",\"watchEvent\":\"{}\"", change.as_str())?;
    }
    out.write_all(b"}")
}

/// The keys between `binding` and `type`; returns the value of `type`.
fn write_event(
    out: &mut impl Write,
    context: &BindingContext,
    cache: &mut Cache<'_, impl Snapshots>,
) -> io::Result<&'static str> {
    let kind = match &context.event {
        Event::OnStartup => "",
        Event::Schedule => "Schedule",
        Event::Synchronization => {
            out.write_all(b",\"objects\":")?;
            write_items(out, cache.items(&context.binding))?;
            "Synchronization"
        }
        Event::Object { item, .. } => {
            write_fields(out, item, true)?;
            "Event"
        }
        Event::Validating(review) => {
            raw(out, "review", review)?;
            "Validating"
        }
        Event::Mutating(review) => {
            raw(out, "review", review)?;
            "Mutating"
        }
        Event::Conversion { from, review, .. } => {
            out.write_all(b",\"fromVersion\":")?;
            string(out, from)?;
            raw(out, "review", review)?;
            "Conversion"
        }
    };
    if !context.snapshots.is_empty() {
        write_snapshots(out, context, cache)?;
    }
    if let Event::Conversion { to, .. } = &context.event {
        out.write_all(b",\"toVersion\":")?;
        string(out, to)?;
    }
    Ok(kind)
}

fn write_snapshots(
    out: &mut impl Write,
    context: &BindingContext,
    cache: &mut Cache<'_, impl Snapshots>,
) -> io::Result<()> {
    let mut names: Vec<&String> = context.snapshots.iter().collect();
    names.sort_unstable();
    names.dedup();
    out.write_all(b",\"snapshots\":{")?;
    for (position, name) in names.into_iter().enumerate() {
        if position > 0 {
            out.write_all(b",")?;
        }
        string(out, name)?;
        out.write_all(b":")?;
        write_items(out, cache.items(name))?;
    }
    out.write_all(b"}")
}

/// The text of an object at this position of a list, with the comma before it.
pub fn item_text(position: usize, item: &Item) -> Vec<u8> {
    let mut text = Vec::new();
    write_item(&mut text, position, item).expect("writing to memory does not fail");
    text
}

fn write_items(out: &mut impl Write, items: &[Item]) -> io::Result<()> {
    out.write_all(b"[")?;
    for (position, item) in items.iter().enumerate() {
        write_item(out, position, item)?;
    }
    out.write_all(b"]")
}

fn write_item(out: &mut impl Write, position: usize, item: &Item) -> io::Result<()> {
    out.write_all(if position > 0 { b",{" } else { b"{" })?;
    write_fields(out, item, false)?;
    out.write_all(b"}")
}

fn write_fields(out: &mut impl Write, item: &Item, mut comma: bool) -> io::Result<()> {
    for (key, value) in [("filterResult", &item.filter_result), ("object", &item.object)] {
        let Some(value) = value else { continue };
        if comma {
            out.write_all(b",")?;
        }
        write!(out, "\"{key}\":")?;
        out.write_all(value)?;
        comma = true;
    }
    Ok(())
}

fn raw(out: &mut impl Write, key: &str, json: &[u8]) -> io::Result<()> {
    write!(out, ",\"{key}\":")?;
    out.write_all(json)
}

fn string(out: &mut impl Write, text: &str) -> io::Result<()> {
    let mut quoted = Vec::with_capacity(text.len() + 2);
    write_string(&mut quoted, text.as_bytes());
    out.write_all(&quoted)
}
