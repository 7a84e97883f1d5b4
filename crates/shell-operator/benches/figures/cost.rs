//! The cost of a running program, as the kernel counts it.

use std::time::Duration;

/// Resident memory in MB.
pub(crate) fn memory(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kib: f64 = line.trim().strip_suffix("kB").unwrap().trim().parse().unwrap();
    kib * 1024.0 / 1e6
}

/// CPU time of the living threads, without their children: the kernel counts it in nanoseconds.
pub(crate) fn cpu(pid: u32) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let of_thread = |thread: std::io::Result<std::fs::DirEntry>| {
        // A thread may end at any moment.
        let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    };
    Duration::from_nanos(threads.filter_map(of_thread).sum())
}

/// Clock ticks in user mode and in the kernel.
pub(crate) fn ticks(pid: u32) -> (u64, u64) {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let numbers: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    // The numbers begin with field 3; user and system time are fields 14 and 15.
    let field = |number: usize| numbers[number - 3].parse().unwrap();
    (field(14), field(15))
}

/// How often threads that live waited for something, or were interrupted.
pub(crate) fn switches(pid: u32) -> u64 {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let of_thread = |thread: std::io::Result<std::fs::DirEntry>| {
        let text = std::fs::read_to_string(thread.ok()?.path().join("status")).ok()?;
        let lines = text.lines().filter_map(|line| line.split_once("voluntary_ctxt_switches:"));
        Some(lines.filter_map(|(_, count)| count.trim().parse::<u64>().ok()).sum::<u64>())
    };
    threads.filter_map(of_thread).sum()
}
