//! The cost of the operator: memory, time to start, time to a hook, CPU. `cargo bench -p shell-operator`, or some measurements
//! only: `cargo bench -p shell-operator -- latency filter_and_idle`. `-- so_soak` runs for 20 minutes.
//!
//! Everything is measured on the program itself, against an API server and etcd that this starts on loopback as the
//! tests do. One line a figure:
//!
//! ```text
//! BENCH name=NAME value=NUMBER unit=UNIT beside=WHAT:NUMBER,… goal=NUMBER ok|short
//! ```

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench that cannot go on ends, and it talks to people"
)]

use std::process::ExitCode;

#[path = "../../tests/it/cluster/control_plane.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod control_plane;
mod cost;
mod figure;
mod measures;
mod objects;
#[path = "../../tests/it/cluster/operator.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod operator;
#[path = "../../tests/it/cluster/programs.rs"]
mod programs;
mod soak;

use control_plane::ControlPlane;
use measures::Bench;
use objects::Api;

fn main() -> ExitCode {
    // `cargo test --benches` runs this program too, without the flag.
    if !std::env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    let only: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    if only == [soak::NAME] {
        return show(soak::soak());
    }
    let plane = ControlPlane::start();
    let bench = Bench { api: Api::of(&plane), plane };
    println!("creating two sets of {} ConfigMaps", objects::COUNT);
    bench.api.fill(measures::LARGE, 10 << 10);
    bench.api.fill(measures::SMALL, 1 << 10);
    let wanted = |name: &str| only.is_empty() || only.iter().any(|word| word == name);
    let measures = measures::ALL.into_iter().filter(|(name, _)| wanted(name));
    show(measures.flat_map(|(_, measure)| measure(&bench)))
}

/// Prints each figure as soon as it is measured; fails if a figure does not reach its goal.
fn show(figures: impl IntoIterator<Item = figure::Figure>) -> ExitCode {
    let mut good = true;
    for figure in figures {
        println!("{figure}");
        good &= figure.is_reached();
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
