//! Tests of the changes that a binding holds back, and of the changes that it delivers.

use super::*;

#[derive(Default)]
struct Delivered(Mutex<Vec<String>>);

impl Sink for Delivered {
    fn deliver(&self, deliveries: Vec<Delivery>) {
        let text = |Change { event, identity, item }: Change| {
            let item = item.filter_result.map(|text| String::from_utf8(text.to_vec()).unwrap());
            format!("{}:{}:{}", event.as_str(), identity.name, item.unwrap_or_default())
        };
        self.0.lock().unwrap().extend(deliveries.into_iter().map(|delivery| text(delivery.change)));
    }
}

fn change(event: WatchEvent, name: &str, result: &str) -> ViewChange {
    let identity = Arc::new(Identity { name: name.to_owned(), ..Identity::default() });
    let item = Item { object: None, filter_result: Some(result.as_bytes().into()) };
    ViewChange { view: 0, event, item, identity }
}

fn monitor() -> Arc<Monitor> {
    Monitor::new("h".into(), 0, ConfigVersion::V1, KubernetesBinding::of_kind("Pod".to_owned()))
}

fn released(monitor: &Arc<Monitor>) -> Vec<String> {
    let sink = Delivered::default();
    monitor.release(&sink);
    sink.0.into_inner().unwrap()
}

#[test]
fn of_an_object_one_change_waits() {
    let cases: [(&str, &[WatchEvent], &str); 5] = [
        ("new_and_changed", &[WatchEvent::Added, WatchEvent::Modified], "Added"),
        ("changed_and_gone", &[WatchEvent::Modified, WatchEvent::Deleted], "Deleted"),
        ("new_and_gone", &[WatchEvent::Added, WatchEvent::Modified, WatchEvent::Deleted], "Deleted"),
        ("made_again", &[WatchEvent::Deleted, WatchEvent::Added, WatchEvent::Modified], "Added"),
        ("changed", &[WatchEvent::Modified, WatchEvent::Modified], "Modified"),
    ];
    for (case, events, expected) in cases {
        let monitor = monitor();
        monitor.hold();
        for (number, event) in events.iter().enumerate() {
            assert!(monitor.offer(1, &change(*event, "a", &number.to_string())).is_none(), "{case}");
        }
        assert_eq!(released(&monitor), [format!("{expected}:a:{}", events.len() - 1)], "{case}");
    }
}

#[test]
fn what_waits_has_a_bound_and_keeps_its_order() {
    let monitor = monitor();
    monitor.hold();
    for number in 0..10_000 {
        monitor.offer(1, &change(WatchEvent::Modified, ["b", "a"][number % 2], &number.to_string()));
    }
    assert_eq!(released(&monitor), ["Modified:b:9998", "Modified:a:9999"]);
    assert!(
        monitor.offer(1, &change(WatchEvent::Modified, "a", "")).is_some(),
        "released, events are delivered"
    );
}

#[test]
fn what_comes_before_the_state_at_start_is_read_is_in_it() {
    let monitor = monitor();
    monitor.offer(1, &change(WatchEvent::Modified, "a", "1"));
    monitor.snapshot_for_start();
    monitor.offer(1, &change(WatchEvent::Modified, "a", "2"));
    assert_eq!(released(&monitor), ["Modified:a:2"]);
}
