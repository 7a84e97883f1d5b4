//! The control machine as a host, for all-in-one clusters: the same conversation as over SSH, with a child process.
//!
//! Each call is a `sh` in its own process group, so that kk handles a Ctrl-C at the terminal and the `sh` does not receive it.
//! One thread owns the `sh` until it has ended.

use std::{
    io::{self, Read, Write},
    process::{Child, ChildStdin, Command as Process, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use std::os::unix::process::CommandExt;

use async_trait::async_trait;
use kk_config::Secret;
use rustix::{
    event::{PollFd, PollFlags},
    io::ioctl_fionbio,
};
use tokio::sync::oneshot;

use crate::{
    Error,
    exchange::{Call, Caller, Failure, Opening, Peer, Pipe, Reply, Root, Stream, drive, find_root, plain},
    poll::poll_all,
    stats::Counters,
};

/// How long sudo may take to answer.
const SUDO: Duration = Duration::from_secs(30);

/// The control machine.
pub struct LocalConnection {
    core: Arc<Core>,
}

struct Core {
    peer: Peer,
    sudo_password: Option<Secret>,
    counters: Counters,
    root: Mutex<Option<Root>>,
}

impl LocalConnection {
    /// The control machine under the name that the Cluster file gives it. The password is for sudo, if kk does not run as root.
    pub fn new(name: impl Into<String>, sudo_password: Option<Secret>) -> Self {
        let user = std::env::var("USER").unwrap_or_else(|_| "the current user".to_owned());
        Self {
            core: Arc::new(Core {
                peer: Peer { host: name.into(), user },
                sudo_password,
                counters: Counters::default(),
                root: Mutex::default(),
            }),
        }
    }
}

#[async_trait]
impl Caller for LocalConnection {
    fn peer(&self) -> &Peer {
        &self.core.peer
    }

    fn counters(&self) -> &Counters {
        &self.core.counters
    }

    async fn call(&self, mut call: Call) -> Result<Reply, Error> {
        let stop = call.cancel.child_token();
        let _guard = stop.clone().drop_guard();
        call.cancel = stop;
        let core = Arc::clone(&self.core);
        let (reply, answer) = oneshot::channel();
        let lost = |reason: String| Error::Lost { host: self.core.peer.host.clone(), reason };
        thread::Builder::new()
            .name("local".into())
            .spawn(move || core.serve(&mut call, reply))
            .map_err(|error| lost(error.to_string()))?;
        answer.await.unwrap_or_else(|_| Err(lost("its thread has ended".into())))
    }

    fn close_idle(&self) {}
}

impl Core {
    /// Carries out a call, sends the reply, and stays until the shell has ended.
    fn serve(&self, call: &mut Call, reply: oneshot::Sender<Result<Reply, Error>>) {
        let mut child = None;
        let result = self.attempt(call, &mut child).map_err(|failure| match failure {
            Failure::NotBegun(reason) => Error::Lost { host: self.peer.host.clone(), reason },
            Failure::Final(error) => error,
        });
        // The caller may have dropped its call; the call has been ended in that case.
        drop(reply.send(result));
        if let Some(mut child) = child {
            // Its streams are closed by now, so it ends by itself; `wait` only reaps it.
            drop(child.wait());
        }
    }

    fn attempt(&self, call: &mut Call, child: &mut Option<Child>) -> Result<Reply, Failure> {
        let root = self.root()?;
        let opening = Opening::new(&root, call, &[]).map_err(Failure::Final)?;
        self.counters.attempt();
        let prelude = opening.prelude.len() as u64;
        let mut pipe = ChildPipe::start(&opening.command, child).map_err(not_begun)?;
        let reply = drive(&mut pipe, call, opening, &self.peer)?;
        self.counters.moved(prelude + reply.body_sent, reply.received);
        Ok(reply)
    }

    fn root(&self) -> Result<Root, Failure> {
        let mut known = self.root.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(root) = &*known {
            return Ok(root.clone());
        }
        let mut exec = |command: &str, input: &[u8]| {
            let mut child = None;
            let said = ChildPipe::start(command, &mut child)
                .and_then(|mut pipe| plain(&mut pipe, input, SUDO))
                .map_err(not_begun);
            if let Some(mut child) = child {
                drop(child.wait());
            }
            said
        };
        let root = find_root(&mut exec, &self.peer, self.sudo_password.as_ref())?;
        if matches!(root, Root::Sudo { pty: true, .. }) {
            let reason = "sudo insists on a terminal (requiretty); run the program as root".to_owned();
            let Peer { host, user } = self.peer.clone();
            return Err(Failure::Final(Error::Sudo { host, user, reason }));
        }
        *known = Some(root.clone());
        Ok(root)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn not_begun(error: io::Error) -> Failure {
    Failure::NotBegun(error.to_string())
}

/// A child's streams. None of them blocks.
pub(crate) struct ChildPipe {
    input: Option<ChildStdin>,
    output: std::process::ChildStdout,
    errors: std::process::ChildStderr,
    /// Streams that are at their end: poll would report them again and again.
    ended: [bool; 2],
}

impl ChildPipe {
    /// Starts a shell command; the child itself is put into `child`.
    pub(crate) fn start(command: &str, child: &mut Option<Child>) -> io::Result<Self> {
        let mut started = Process::new("sh")
            .args(["-c", command])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let (input, output, errors) = (started.stdin.take(), started.stdout.take(), started.stderr.take());
        *child = Some(started);
        let (Some(input), Some(output), Some(errors)) = (input, output, errors) else {
            return Err(io::Error::other("the shell has no streams"));
        };
        ioctl_fionbio(&input, true)?;
        ioctl_fionbio(&output, true)?;
        ioctl_fionbio(&errors, true)?;
        Ok(Self { input: Some(input), output, errors, ended: [false; 2] })
    }
}

impl Pipe for ChildPipe {
    fn read(&mut self, stream: Stream, buf: &mut [u8]) -> io::Result<usize> {
        let (n, ended) = match stream {
            Stream::Out => (self.output.read(buf)?, &mut self.ended[0]),
            Stream::Err => (self.errors.read(buf)?, &mut self.ended[1]),
        };
        *ended = n == 0;
        Ok(n)
    }

    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        match &mut self.input {
            Some(input) => input.write(data),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn mid_packet(&self) -> bool {
        false
    }

    fn close_input(&mut self) -> io::Result<()> {
        self.input = None;
        Ok(())
    }

    fn wait(&mut self, timeout: Duration, sending: bool) -> io::Result<()> {
        let mut fds = Vec::new();
        if !self.ended[0] {
            fds.push(PollFd::new(&self.output, PollFlags::IN));
        }
        if !self.ended[1] {
            fds.push(PollFd::new(&self.errors, PollFlags::IN));
        }
        if let Some(input) = self.input.as_ref().filter(|_| sending) {
            fds.push(PollFd::new(input, PollFlags::OUT));
        }
        poll_all(&mut fds, timeout).map(drop)
    }
}
