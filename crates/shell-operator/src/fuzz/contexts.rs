//! Random contexts: whatever the names and contents of objects and bindings, a hook gets JSON that contains them.

use std::sync::Arc;

use arbtest::arbitrary::{Result, Unstructured};
use serde::Deserialize;

use super::{Seeds, fuzz};
use crate::config::{ConfigVersion, WatchEvent};
use crate::context::{BindingContext, Event, Identity, Item, Snapshots, write};
use crate::json::{self, Numbers};

/// The compared part. The rest is only checked for mistakes, because `serde_json` reads no number like 1e999.
#[derive(Deserialize)]
struct Read {
    binding: String,
}

struct Shown(Vec<Item>);

impl Snapshots for Shown {
    fn items(&self, _: &str) -> Vec<Item> {
        self.0.clone()
    }
}

/// An object's text as the store keeps it.
fn object(seeds: &Seeds, u: &mut Unstructured<'_>) -> Result<Arc<[u8]>> {
    let value = json::parse(&seeds.changed(u)?).ok();
    let text = value.and_then(|value| json::to_vec(&value, Numbers::Exact).ok());
    Ok(text.unwrap_or_else(|| b"{}".to_vec()).into())
}

fn context(seeds: &Seeds, u: &mut Unstructured<'_>) -> Result<BindingContext> {
    let text = object(seeds, u)?;
    let item =
        Item { object: Some(text.clone()), filter_result: u.arbitrary::<bool>()?.then(|| text.clone()) };
    let identity = Identity { kind: u.arbitrary()?, namespace: u.arbitrary()?, name: u.arbitrary()? };
    let change = *u.choose(&[WatchEvent::Added, WatchEvent::Modified, WatchEvent::Deleted])?;
    let event = match u.int_in_range(0..=4)? {
        0 => Event::Schedule,
        1 => Event::Synchronization,
        2 => Event::Validating(text),
        3 => Event::Conversion { from: u.arbitrary()?, to: u.arbitrary()?, review: text },
        _ => Event::Object { change, item, identity: identity.into() },
    };
    let names: Vec<String> = u.arbitrary()?;
    Ok(BindingContext { binding: u.arbitrary()?, event, group: u.arbitrary()?, snapshots: names.into() })
}

#[test]
fn fuzz_contexts() {
    let seeds = Seeds::of("objects", []);
    fuzz("contexts", |u| {
        let contexts = [context(&seeds, u)?, context(&seeds, u)?];
        let shown = Shown(vec![Item { object: Some(object(&seeds, u)?), filter_result: None }]);
        for version in [ConfigVersion::V0, ConfigVersion::V1] {
            let mut out = Vec::new();
            write(&mut out, &contexts, version, &shown).unwrap();
            assert!(out.ends_with(b"]\n"));
            let read: Vec<Read> = serde_json::from_slice(&out).unwrap();
            let bindings: Vec<&str> = read.iter().map(|context| &*context.binding).collect();
            assert_eq!(bindings, [&*contexts[0].binding, &*contexts[1].binding]);
        }
        Ok(())
    });
}
