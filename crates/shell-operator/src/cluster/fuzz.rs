//! Lines of a watch and pages of a list: what is cut out of them is what is in them.

use std::sync::Arc;

use serde_json::Value;

use super::Resource;
use super::prune::{Needs, split_event};
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
        // Keys that are escaped are not found; the API server escapes none.
        if let (Some(pruned), Ok(whole), false) = (pruned, read(object), object.contains(&b'\\')) {
            assert_eq!(read(&pruned).unwrap(), whole, "{}", String::from_utf8_lossy(object));
        }
        Ok(())
    });
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
