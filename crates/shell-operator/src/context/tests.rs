//! Shapes of binding contexts, byte for byte.

use std::cell::RefCell;
use std::sync::Arc;

use super::*;
use crate::config::ConfigVersion;

/// Snapshots from a table; counts how often each is read.
struct Table {
    items: Vec<(&'static str, Vec<Item>)>,
    reads: RefCell<Vec<String>>,
}

impl Table {
    fn new(items: Vec<(&'static str, Vec<Item>)>) -> Self {
        Self { items, reads: RefCell::default() }
    }
}

impl Snapshots for Table {
    fn items(&self, binding: &str) -> Vec<Item> {
        self.reads.borrow_mut().push(binding.to_owned());
        self.items
            .iter()
            .find(|(name, _)| *name == binding)
            .map(|(_, items)| items.clone())
            .unwrap_or_default()
    }
}

fn item(object: Option<&str>, result: Option<&str>) -> Item {
    let bytes = |text: &str| Arc::from(text.as_bytes());
    Item { object: object.map(bytes), filter_result: result.map(bytes) }
}

fn context(binding: &str, event: Event, group: Option<&str>, snapshots: &[&str]) -> BindingContext {
    BindingContext {
        binding: binding.into(),
        event,
        group: group.map(Into::into),
        snapshots: snapshots.iter().map(|name| (*name).to_owned()).collect(),
    }
}

fn object(change: WatchEvent, item: Item) -> Event {
    let identity = Identity { kind: "Pod".into(), namespace: "ns".into(), name: "p".into() };
    Event::Object { change, item, identity: Arc::new(identity) }
}

fn text(contexts: &[BindingContext], version: ConfigVersion, table: &Table) -> String {
    let mut out = Vec::new();
    write(&mut out, contexts, version, table).unwrap();
    String::from_utf8(out).unwrap().strip_suffix('\n').expect("a newline at the end").to_owned()
}

#[test]
fn v1_shapes() {
    for (case, context, expected) in [
        ("startup", BindingContext::on_startup(), r#"[{"binding":"onStartup"}]"#),
        (
            "schedule",
            context("a<b", Event::Schedule, None, &[]),
            r#"[{"binding":"a\u003cb","type":"Schedule"}]"#,
        ),
        (
            "schedule_with_snapshots",
            context("t", Event::Schedule, None, &["none", "cms"]),
            r#"[{"binding":"t","snapshots":{"cms":[{"filterResult":1,"object":{}},{}],"none":[]},"type":"Schedule"}]"#,
        ),
        (
            "synchronization",
            context("cms", Event::Synchronization, None, &[]),
            r#"[{"binding":"cms","objects":[{"filterResult":1,"object":{}},{}],"type":"Synchronization"}]"#,
        ),
        (
            "empty_synchronization",
            context("none", Event::Synchronization, None, &[]),
            r#"[{"binding":"none","objects":[],"type":"Synchronization"}]"#,
        ),
        (
            "event",
            context("cms", object(WatchEvent::Added, item(Some("{}"), Some("null"))), None, &["none"]),
            r#"[{"binding":"cms","filterResult":null,"object":{},"snapshots":{"none":[]},"type":"Event","watchEvent":"Added"}]"#,
        ),
        (
            "event_without_object",
            context("cms", object(WatchEvent::Deleted, Item::default()), None, &[]),
            r#"[{"binding":"cms","type":"Event","watchEvent":"Deleted"}]"#,
        ),
        (
            "group",
            context("cms", object(WatchEvent::Added, Item::default()), Some("g"), &["none"]),
            r#"[{"binding":"cms","groupName":"g","snapshots":{"none":[]},"type":"Group"}]"#,
        ),
        (
            "empty_group",
            context("t", Event::Schedule, Some("g"), &[]),
            r#"[{"binding":"t","groupName":"g","snapshots":{},"type":"Group"}]"#,
        ),
        (
            "validating",
            context("v", Event::Validating(Arc::from(*b"{\"request\":{}}")), Some("g"), &["none"]),
            r#"[{"binding":"v","review":{"request":{}},"snapshots":{"none":[]},"type":"Validating"}]"#,
        ),
        (
            "conversion",
            context(
                "c",
                Event::Conversion { from: "v1".into(), to: "v2".into(), review: Arc::from(*b"{}") },
                None,
                &[],
            ),
            r#"[{"binding":"c","fromVersion":"v1","review":{},"toVersion":"v2","type":"Conversion"}]"#,
        ),
    ] {
        let table = Table::new(vec![("cms", vec![item(Some("{}"), Some("1")), Item::default()])]);
        assert_eq!(text(&[context], ConfigVersion::V1, &table), expected, "{case}");
    }
}

#[test]
fn v0_shapes() {
    for (context, expected) in [
        (BindingContext::on_startup(), r#"[{"binding":"onStartup"}]"#),
        (context("tick", Event::Schedule, None, &[]), r#"[{"binding":"tick"}]"#),
        (
            context("pods", object(WatchEvent::Modified, Item::default()), None, &[]),
            r#"[{"binding":"pods","resourceEvent":"update","resourceKind":"Pod","resourceName":"p","resourceNamespace":"ns"}]"#,
        ),
    ] {
        assert_eq!(text(&[context], ConfigVersion::V0, &Table::new(vec![])), expected, "{expected}");
    }
}

#[test]
fn a_snapshot_is_read_once_for_all_contexts_of_a_run() {
    let table = Table::new(vec![]);
    let tick = context("t", Event::Schedule, None, &["a"]);
    let sync = context("a", Event::Synchronization, None, &["a"]);
    text(&[tick.clone(), sync, tick], ConfigVersion::V1, &table);
    assert_eq!(*table.reads.borrow(), ["a"]);
}

#[test]
fn no_context_is_an_empty_list() {
    assert_eq!(text(&[], ConfigVersion::V1, &Table::new(vec![])), "[]");
}
