//! The operator's own child processes, and the end of others' children.
//!
//! As process 1 of a container, or as a child subreaper, the operator becomes the parent of every process whose parent
//! ends, and has to take their exit status or they stay as zombies. It must not take the status of those that it
//! started itself: whoever started them waits for it. The list of these belongs to the process, as children do.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::{Pid, getpgrp};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

static OWN: Mutex<BTreeSet<Pid>> = Mutex::new(BTreeSet::new());

fn own() -> MutexGuard<'static, BTreeSet<Pid>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A child in the list, for as long as this value lives. When that ends before the exit status was taken, the process is
/// killed with its children.
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

    /// The exit status was taken: from now on the process id may be that of another process.
    pub(super) fn waited_for(mut self) {
        self.waited_for = true;
    }

    /// Sends `what` to the process and all its children.
    pub(super) fn signal(&self, what: Signal) {
        // It may have ended just now.
        let _ = killpg(self.pid, what);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if !self.waited_for {
            self.signal(Signal::SIGKILL);
        }
        own().remove(&self.pid);
    }
}

/// Starts a program in a process group of its own.
pub(super) fn spawn(command: &mut Command) -> io::Result<(Child, Entry)> {
    // Kept while the process is made: the reaper must not meet one that is not in the list yet.
    let mut own = own();
    let child = command.process_group(0).kill_on_drop(true).spawn()?;
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).ok_or(io::ErrorKind::NotFound)?;
    let pid = Pid::from_raw(pid);
    own.insert(pid);
    Ok((child, Entry { pid, waited_for: false }))
}

/// Ends all running programs and their children at once.
pub fn kill_all() {
    for pid in own().iter() {
        let _ = killpg(*pid, Signal::SIGKILL);
    }
}

/// Takes the exit status of processes that were left to the operator, for as long as it runs. Returns at once when
/// none can be.
pub async fn reap_orphans() {
    let adopts = Pid::this().as_raw() == 1 || nix::sys::prctl::get_child_subreaper().unwrap_or(false);
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
    let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    match waitid(Id::All, look) {
        Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return,
        _ => {}
    }
    let Ok(processes) = std::fs::read_dir("/proc") else { return };
    let numbers = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    for pid in numbers.map(Pid::from_raw).filter(|pid| is_orphan(*pid)) {
        let own = own();
        if !own.contains(&pid) && waitpid(pid, Some(WaitPidFlag::WNOHANG)).is_ok() {
            tracing::debug!(pid = pid.as_raw(), "a process that was left behind has ended");
        }
    }
}

/// Whether the process is a zombie that the operator is the parent of, and was not started by one of its libraries:
/// those stay in the operator's process group, what comes from hooks does not.
fn is_orphan(pid: Pid) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    // The name in parentheses may hold anything. After it: state, parent, process group.
    let Some((_, rest)) = stat.rsplit_once(')') else { return false };
    let mut fields = rest.split_whitespace();
    let state = fields.next();
    let mut number = || fields.next().and_then(|field| field.parse::<i32>().ok()).map(Pid::from_raw);
    let (parent, group) = (number(), number());
    state == Some("Z") && parent == Some(Pid::this()) && group != Some(getpgrp())
}
