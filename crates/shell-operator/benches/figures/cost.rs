//! What a running program costs, as the kernel counts it.

use std::time::Duration;

/// Clock ticks a second in `/proc/PID/stat`: fixed in Linux' interface to programs.
const TICKS: u64 = 100;

/// Resident memory in MB.
pub(crate) fn memory(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kib: f64 = line.trim().strip_suffix("kB").unwrap().trim().parse().unwrap();
    kib * 1024.0 / 1e6
}

/// CPU time of all threads, also of those that have ended, and without that of children; in steps of 10 ms.
pub(crate) fn cpu(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let numbers: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    // The numbers begin with field 3; user and system time are fields 14 and 15.
    let ticks: u64 = [14, 15].iter().map(|field| numbers[field - 3].parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 1000 / TICKS)
}
