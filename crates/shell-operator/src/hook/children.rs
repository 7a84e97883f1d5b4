//! The operator's own child processes, and the end of others' children.
//!
//! As process 1 of a container, or as a child subreaper, the operator becomes the parent of every process whose parent ends, and
//! has to take their exit status or they stay as zombies. It must not take the status of processes that it started itself,
//! because other code waits for them. The list of these processes is global, as a process's children are.

use std::collections::HashSet;
use std::io;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, child_subreaper, getpid, kill_process_group, waitid,
    waitpid,
};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

static OWN: LazyLock<Mutex<HashSet<Pid>>> = LazyLock::new(Mutex::default);

fn own() -> MutexGuard<'static, HashSet<Pid>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A child that is in the list as long as this value exists. If the value is dropped before the exit status was taken, the
/// process is killed with its children.
#[derive(Debug)]
pub(super) struct Entry {
    pid: Pid,
    waited_for: bool,
}

impl Entry {
    /// The process, and its process group.
    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    /// The exit status was taken: from now on, another process may have the process id.
    pub(super) fn waited_for(mut self) {
        self.waited_for = true;
    }

    /// Sends `what` to the process and all its children.
    pub(super) fn signal(&self, what: Signal) {
        // It may have ended just now.
        let _ = kill_process_group(self.pid, what);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if !self.waited_for {
            self.signal(Signal::KILL);
        }
        own().remove(&self.pid);
    }
}

/// Starts a program in a process group of its own.
pub(super) fn spawn(command: &mut Command) -> io::Result<(Child, Entry)> {
    // Locked while the process is created: the reaper must not meet a process that is not in the list yet.
    let mut own = own();
    let child = command.process_group(0).kill_on_drop(true).spawn()?;
    let pid = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?)).ok_or(io::ErrorKind::NotFound)?;
    own.insert(pid);
    Ok((child, Entry { pid, waited_for: false }))
}

/// Ends all running programs and their children at once.
pub fn kill_all() {
    for pid in own().iter() {
        let _ = kill_process_group(*pid, Signal::KILL);
    }
}

/// Takes the exit status of processes that the operator has inherited, for as long as it runs. Returns at once if it cannot
/// inherit any.
pub async fn reap_orphans() {
    let adopts = getpid().is_init() || child_subreaper().is_ok_and(|subreaper| subreaper.is_some());
    if !adopts {
        return;
    }
    let mut ended = match signal(SignalKind::child()) {
        Ok(ended) => ended,
        Err(error) => {
            tracing::warn!(error = error.to_string(), "processes that hooks leave behind stay as zombies");
            return;
        }
    };
    loop {
        if tokio::task::spawn_blocking(reap).await.is_err() || ended.recv().await.is_none() {
            return;
        }
    }
}

fn reap() {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    if matches!(waitid(WaitId::All, look), Ok(None) | Err(Errno::CHILD)) {
        return;
    }
    let Ok(processes) = std::fs::read_dir("/proc") else { return };
    let numbers = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    for pid in numbers.filter_map(Pid::from_raw).filter(|pid| is_orphan(*pid)) {
        let own = own();
        if !own.contains(&pid) && waitpid(Some(pid), WaitOptions::NOHANG).is_ok() {
            tracing::debug!(pid = pid.as_raw_pid(), "a process that was left behind has ended");
        }
    }
}

/// Whether the process is a zombie that the operator is the parent of, and was not started by one of its libraries: processes of
/// libraries stay in the operator's process group, processes of hooks do not.
fn is_orphan(pid: Pid) -> bool {
    let own = getpid();
    match (Stat::of(pid), Stat::of(own)) {
        (Some(process), Some(operator)) => {
            process.state == 'Z' && process.parent == own.as_raw_pid() && process.group != operator.group
        }
        _ => false,
    }
}

/// The first fields of `/proc/ID/stat` (proc(5)).
struct Stat {
    state: char,
    parent: i32,
    /// 0 for a group outside of the container, which may be the group of the operator itself as process 1. `getpgrp` of rustix
    /// panics there.
    group: i32,
}

impl Stat {
    fn of(pid: Pid) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in parentheses may contain anything. It is followed by state, parent and process group.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        Some(Self {
            state: fields.next()?.chars().next()?,
            parent: fields.next()?.parse().ok()?,
            group: fields.next()?.parse().ok()?,
        })
    }
}
