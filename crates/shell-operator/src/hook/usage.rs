//! The resources that a program uses.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::metrics::RunUsage;

/// Clock ticks a second in `/proc/PID/stat`: fixed in Linux' interface to programs.
const TICKS: u32 = 100;

/// Waits until the program has ended, without taking its exit status, and notes its usage.
///
/// CPU time is exact and includes the children that it waited for. Memory is read right after the start, and then at growing
/// intervals: the kernel does not report it for a program that has ended. So it is unknown if the program ends at once.
pub(super) async fn until_end(pid: Pid, usage: &mut RunUsage) -> io::Result<()> {
    let process = watch(pid)?;
    let mut pause = Duration::from_millis(1);
    loop {
        usage.max_rss_bytes = usage.max_rss_bytes.max(peak_memory(pid).unwrap_or(0));
        if let Ok(ended) = tokio::time::timeout(pause, process.readable()).await {
            ended?.retain_ready();
            break;
        }
        pause = (pause * 2).min(Duration::from_secs(1));
    }
    if let Some((user, system)) = cpu_times(pid) {
        (usage.user, usage.system) = (user, system);
    }
    Ok(())
}

/// A descriptor that becomes readable when the process ends: many may run, so no process has a thread that waits for it.
#[expect(deprecated, reason = "what replaces it is unsafe; an owned descriptor stays what it is")]
fn watch(pid: Pid) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(pidfd_open(pid, PidfdFlags::empty())?, Interest::READABLE)
}

fn peak_memory(pid: Pid) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// User and system time of the program and the children it waited for.
fn cpu_times(pid: Pid) -> Option<(Duration, Duration)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain anything; the numbers follow it, from field 3 on.
    let numbers: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |field: usize| numbers.get(field - 3)?.parse::<u32>().ok();
    let time =
        |own: usize, children: usize| Some(Duration::from_secs(1) * (ticks(own)? + ticks(children)?) / TICKS);
    Some((time(14, 16)?, time(15, 17)?))
}
