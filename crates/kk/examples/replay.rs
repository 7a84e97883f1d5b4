//! Plays a recorded run on this terminal, to inspect the live view without any host:
//! `cargo run -p kk --example replay [ok|fail|many]`.

#[path = "../tests/it/recorded/mod.rs"]
mod recorded;

use std::{thread::sleep, time::Duration};

use kk::args::{OutputFormat, OutputOptions};
use kk::printer::Printer;
use kk_engine::{Event, EventKind};

fn main() {
    let which = std::env::args().nth(1).unwrap_or_default();
    let printer = Printer::new(OutputOptions { no_progress: false, output: OutputFormat::Text });
    let events = match which.as_str() {
        "fail" => recorded::failing(),
        "many" => on_many_hosts(recorded::succeeding()),
        _ => recorded::succeeding(),
    };
    let mut now = 0;
    for event in events {
        sleep(Duration::from_millis(event.at_ms - now));
        now = event.at_ms;
        printer.event(&event);
    }
}

/// The same run with sixty more hosts that behave like node1: more than a terminal has lines.
fn on_many_hosts(mut events: Vec<Event>) -> Vec<Event> {
    let more: Vec<String> = (4..64).map(|number| format!("node{number}")).collect();
    if let EventKind::RunStarted { hosts, .. } = &mut events[0].kind {
        hosts.extend(more.iter().cloned());
    }
    let mut all = Vec::new();
    for event in events {
        if let EventKind::TaskStarted { host, module, task, title, attempt } = &event.kind
            && host == "node1"
        {
            for host in more.iter().cloned() {
                let (module, task, title) = (module.clone(), task.clone(), title.clone());
                let kind = EventKind::TaskStarted { host, module, task, title, attempt: *attempt };
                all.push(Event { at_ms: event.at_ms, kind });
            }
        }
        all.push(event);
    }
    all
}
