//! Random lines of a watch and pages of a list: the parts that are cut out have the same content as the whole.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::Resource;
use super::head::split_event;
use super::prune::Needs;
use super::scan::ItemScanner;
use super::store::{View, digest};
use crate::fuzz::{Seeds, fuzz};
use crate::jq::Filter;

#[test]
fn fuzz_lines_of_watches() {
    let seeds = Seeds::of("lines", []);
    let filter = Arc::new(Filter::compile("{k: .data.k, l: .metadata.labels}").unwrap());
    let views = [View { filter: Some(filter), keep_object: false }];
    let needs = Needs::of(&views);
    let resource = Resource {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        plural: "configmaps".to_owned(),
        namespaced: true,
    };
    fuzz("watch lines", |u| {
        let line = seeds.changed(u)?;
        let object = split_event(&line).map_or(&*line, |(_, object)| object);
        let pruned = needs.prune(object);
        let read = |text: &[u8]| {
            digest(text, &resource, &views, |_| {}).map(|(digest, version)| (format!("{digest:?}"), version))
        };
        // Escaped keys are not found, and no rule defines which value of a repeated key counts; the API server escapes and
        // repeats no keys.
        let unusual = object.contains(&b'\\') || repeats_a_key(object);
        if let (Some(pruned), Ok(whole), false) = (pruned, read(object), unusual) {
            assert_eq!(read(&pruned).unwrap(), whole, "{}", String::from_utf8_lossy(object));
        }
        Ok(())
    });
}

/// Whether an object in the text has a key twice.
fn repeats_a_key(text: &[u8]) -> bool {
    // Members that are not needed are not read, so they may contain invalid UTF-8.
    let read: Result<Distinct, _> = serde_json::from_str(&String::from_utf8_lossy(text));
    read.is_err_and(|error| error.to_string().starts_with(REPEATED))
}

const REPEATED: &str = "a key is repeated";

/// JSON in whose objects no key is repeated.
struct Distinct;

impl<'de> Deserialize<'de> for Distinct {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Look;
        impl<'de> Visitor<'de> for Look {
            type Value = Distinct;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("JSON")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Distinct, A::Error> {
                let mut keys = BTreeSet::new();
                while let Some((key, Distinct)) = map.next_entry::<String, Distinct>()? {
                    if !keys.insert(key) {
                        return Err(A::Error::custom(REPEATED));
                    }
                }
                Ok(Distinct)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Distinct, A::Error> {
                while list.next_element::<Distinct>()?.is_some() {}
                Ok(Distinct)
            }

            fn visit_bool<E>(self, _: bool) -> Result<Distinct, E> {
                Ok(Distinct)
            }

            fn visit_i64<E>(self, _: i64) -> Result<Distinct, E> {
                Ok(Distinct)
            }

            fn visit_u64<E>(self, _: u64) -> Result<Distinct, E> {
                Ok(Distinct)
            }

            fn visit_f64<E>(self, _: f64) -> Result<Distinct, E> {
                Ok(Distinct)
            }

            fn visit_str<E>(self, _: &str) -> Result<Distinct, E> {
                Ok(Distinct)
            }

            fn visit_unit<E>(self) -> Result<Distinct, E> {
                Ok(Distinct)
            }
        }
        deserializer.deserialize_any(Look)
    }
}

#[test]
fn fuzz_pages_of_lists() {
    let seeds = Seeds::of("lines", []);
    let scan = |text: &[u8], size: usize| {
        let (mut scanner, mut items) = (ItemScanner::default(), Vec::new());
        for piece in text.chunks(size) {
            let keep = |item: &[u8]| {
                items.push(String::from_utf8_lossy(item).into_owned());
                Ok::<(), String>(())
            };
            scanner.feed(piece, keep).unwrap();
        }
        (items, String::from_utf8_lossy(&scanner.into_rest()).into_owned())
    };
    fuzz("list pages", |u| {
        let text = seeds.changed(u)?;
        let (items, rest) = scan(&text, text.len().max(1));
        let pieces = u.int_in_range(1..=9)?;
        assert_eq!(scan(&text, pieces), (items.clone(), rest), "{}", String::from_utf8_lossy(&text));
        let Ok(list) = serde_json::from_slice::<Value>(&text) else { return Ok(()) };
        let objects = list["items"].as_array().is_some_and(|items| items.iter().all(Value::is_object));
        // A repeated or escaped key names two lists.
        let once = text.windows(7).filter(|part| part == b"\"items\"").count() == 1;
        if let (true, true, false) = (objects, once, text.contains(&b'\\')) {
            let found: Vec<Value> = items.iter().map(|item| serde_json::from_str(item).unwrap()).collect();
            assert_eq!(Value::from(found), list["items"]);
        }
        Ok(())
    });
}
