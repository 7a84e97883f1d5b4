//! Moves the bytes of a call until its script has ended, was ended, or the connection is lost.

use std::{
    io, thread,
    time::{Duration, Instant},
};

use super::{
    Call, KEEP, Opening, Peer, Pipe, Plain, Reply, Side, Stream,
    frame::{Frame, find},
    last_lines,
};
use crate::Error;

/// How often cancellation and time limits are checked while nothing moves.
const TICK: Duration = Duration::from_millis(50);
/// How long a script may take to end after it was signalled.
const GRACE: Duration = Duration::from_secs(3);
/// How long the host may send nothing before the script has begun. Output restarts this time; in total, the script must begin
/// within the call's own time limit plus this time.
const START: Duration = Duration::from_mins(1);
/// Most output, in bytes, before the script has begun: the greeting of a login shell.
const GREETING: u64 = 1 << 20;
/// Most output, in bytes, of a command without the bootstrap.
const PLAIN: usize = 1 << 20;
/// How long to wait for the receiver of lines when its channel is full.
const RECEIVER: Duration = Duration::from_millis(1);
/// Bytes sent at once; also the unit of progress messages.
const PIECE: usize = 256 << 10;
/// Bytes received at once, initially. Most calls only wait, and with a thousand calls a larger buffer would cost noticeable
/// memory.
const FIRST_RECEIVED: usize = 4 << 10;
/// Bytes received at once by a call with much output: the content of one SSH packet.
const RECEIVED: usize = 32 << 10;

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The script cannot have begun: it is safe to retry on a new session.
    NotBegun(String),
    /// The result for the caller.
    Final(Error),
}

/// Carries out a call whose command was just started behind `pipe`.
pub(crate) fn drive(
    pipe: &mut dyn Pipe,
    call: &mut Call,
    opening: Opening,
    peer: &Peer,
) -> Result<Reply, Failure> {
    if call.cancel.is_cancelled() {
        // It was cancelled while its session was dialled: the script must not even begin.
        return Err(Failure::Final(Error::Cancelled { host: peer.host.clone() }));
    }
    let mut exchange = Exchange::new(call, opening, peer);
    loop {
        let sent = exchange.send(pipe)?;
        let delivered = exchange.is_delivered();
        // While the receiver of lines is busy, the host has to wait.
        let received = delivered && exchange.receive(pipe)?;
        if let Some(code) = exchange.end()
            && exchange.is_delivered()
        {
            return exchange.finish(code);
        }
        exchange.check_limits()?;
        if !delivered {
            thread::sleep(RECEIVER);
        } else if sent || received {
            exchange.moved = Instant::now();
        } else {
            let sending = exchange.input_open && !exchange.outgoing.is_empty();
            pipe.wait(TICK, sending).map_err(|error| exchange.broken(&error))?;
        }
    }
}

/// Runs a command without the bootstrap: sends `input`, then reads both streams to their ends.
pub(crate) fn plain(pipe: &mut dyn Pipe, mut input: &[u8], limit: Duration) -> io::Result<Plain> {
    let deadline = Instant::now() + limit;
    let mut said = Plain { stdout: Vec::new(), stderr: Vec::new() };
    let (mut buf, mut open, mut input_open) = (vec![0; 4096], [true, true], true);
    while open != [false, false] {
        let mut moved = false;
        if !input.is_empty() {
            let n = or_zero(pipe.write(input))?;
            input = &input[n..];
            moved = n > 0;
        } else if input_open {
            input_open = !closed(pipe.close_input())?;
        }
        for (stream, open) in [Stream::Out, Stream::Err].into_iter().zip(&mut open) {
            match pipe.read(stream, &mut buf) {
                Ok(0) => *open = false,
                Ok(_) if said.stdout.len() + said.stderr.len() > PLAIN => {
                    return Err(io::Error::other("it prints without end"));
                }
                Ok(n) => {
                    let into = if stream == Stream::Out { &mut said.stdout } else { &mut said.stderr };
                    into.extend_from_slice(&buf[..n]);
                    moved = true;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        if Instant::now() > deadline {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time"));
        }
        if !moved && open != [false, false] {
            pipe.wait(TICK, !input.is_empty())?;
        }
    }
    Ok(said)
}

fn or_zero(result: io::Result<usize>) -> io::Result<usize> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
        other => other,
    }
}

/// Whether the input is closed now. `false`: closing it must be tried again later.
fn closed(result: io::Result<()>) -> io::Result<bool> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        other => other.map(|()| true),
    }
}

/// The state of one call.
struct Exchange<'a> {
    call: &'a mut Call,
    opening: Opening,
    peer: &'a Peer,
    out: Frame,
    err: Frame,
    open: [bool; 2],
    buf: Vec<u8>,
    /// Bytes to send, from `offset` on.
    outgoing: Vec<u8>,
    offset: usize,
    prelude: Prelude,
    /// When the begin mark was seen: the call's time counts from here.
    began: Option<Instant>,
    /// When the call started.
    opened: Instant,
    /// When a byte was last sent or received.
    moved: Instant,
    /// Bytes that were received before the begin mark, and with it.
    greeting: u64,
    /// Why the script is being ended, and since when.
    stopping: Option<(Instant, Error)>,
    input_open: bool,
    body_sent: u64,
}

#[derive(PartialEq, Eq)]
enum Prelude {
    /// On a terminal: sudo may still ask for the password.
    Password,
    /// On a terminal: waiting until it is transparent.
    Ready,
    Sending,
    Sent,
}

impl<'a> Exchange<'a> {
    fn new(call: &'a mut Call, mut opening: Opening, peer: &'a Peer) -> Self {
        let lines = !matches!(call.side, Side::Quiet);
        let (out, err) =
            (Frame::new(&opening.nonce, call.keep, lines), Frame::new(&opening.nonce, KEEP, false));
        let mut outgoing = Vec::new();
        let prelude = if opening.pty {
            Prelude::Password
        } else {
            if let Some(password) = opening.password.take() {
                outgoing.extend_from_slice(password.expose().as_bytes());
                outgoing.push(b'\n');
            }
            outgoing.append(&mut std::mem::take(&mut opening.prelude));
            Prelude::Sending
        };
        Self {
            call,
            // A terminal has one stream: the text after stdout's end mark is stderr.
            open: [true, !opening.pty],
            opening,
            peer,
            out,
            err,
            buf: vec![0; FIRST_RECEIVED],
            outgoing,
            offset: 0,
            prelude,
            began: None,
            opened: Instant::now(),
            moved: Instant::now(),
            greeting: 0,
            stopping: None,
            input_open: true,
            body_sent: 0,
        }
    }

    /// Sends what is ready; true when something moved.
    fn send(&mut self, pipe: &mut dyn Pipe) -> Result<bool, Failure> {
        if !self.input_open {
            return Ok(false);
        }
        if self.stopping.is_some() && !pipe.mid_packet() {
            self.outgoing.clear();
            self.offset = 0;
        }
        if self.outgoing.is_empty() && !self.refill(pipe)? {
            return Ok(false);
        }
        let Ok(n) = or_zero(pipe.write(&self.outgoing[self.offset..])) else {
            // A script that has ended accepts no input. The next read shows whether the script ended or the connection broke.
            self.input_open = false;
            return Ok(false);
        };
        self.offset += n;
        if self.prelude == Prelude::Sent {
            self.count_body(n);
        }
        if self.offset == self.outgoing.len() {
            self.outgoing.clear();
            self.offset = 0;
            if self.prelude == Prelude::Sending {
                self.prelude = Prelude::Sent;
                // It is not sent again, and with hundreds of concurrent calls it would cost noticeable memory.
                self.outgoing = Vec::new();
                self.call.files = Vec::new();
            }
        }
        Ok(n > 0)
    }

    fn count_body(&mut self, n: usize) {
        self.body_sent += n as u64;
        if let Side::Body(body) = &self.call.side {
            body.progress(n as u64);
        }
    }

    /// Puts the next bytes into `outgoing`; false if no bytes are ready.
    fn refill(&mut self, pipe: &mut dyn Pipe) -> Result<bool, Failure> {
        if self.stopping.is_some() {
            self.input_open = !closed(pipe.close_input()).map_err(|error| self.broken(&error))?;
            return Ok(false);
        }
        match self.prelude {
            Prelude::Password | Prelude::Ready => return self.answer_terminal(),
            Prelude::Sending => {}
            Prelude::Sent => {
                if let Side::Body(body) = &mut self.call.side {
                    let filled = match body.asked_again() {
                        None => body.fill(&mut self.outgoing, PIECE),
                        Some(file) => Err(Error::Transfer {
                            host: self.peer.host.clone(),
                            path: file.display().to_string(),
                            reason: "the host asks for it a second time".into(),
                        }),
                    };
                    self.stopping = filled.err().map(|error| (Instant::now(), error));
                }
            }
        }
        Ok(!self.outgoing.is_empty())
    }

    /// On a terminal, input that arrives before sudo's prompt is discarded: waits for the prompt and for the shell.
    fn answer_terminal(&mut self) -> Result<bool, Failure> {
        let seen = self.out.preamble();
        if find(seen, self.opening.ready().as_bytes()).is_some() {
            self.outgoing = std::mem::take(&mut self.opening.prelude);
            self.prelude = Prelude::Sending;
            return Ok(true);
        }
        let prompt = self.opening.prompt();
        let Some(first) = find(seen, prompt.as_bytes()) else { return Ok(false) };
        if self.prelude == Prelude::Ready {
            let again = find(&seen[first + prompt.len()..], prompt.as_bytes()).is_some();
            return if again { Err(self.no_root("wrong password".into())) } else { Ok(false) };
        }
        self.prelude = Prelude::Ready;
        let Some(password) = self.opening.password.take() else { return Ok(false) };
        self.outgoing = format!("{}\n", password.expose()).into_bytes();
        Ok(true)
    }

    /// Whether the received lines have been passed on.
    fn is_delivered(&mut self) -> bool {
        if self.call.side.is_delivered() {
            return true;
        }
        if self.stopping.is_some() {
            // A script that is being ended is read to the end of its streams, even if the receiver of lines stays busy.
            self.call.side = Side::Quiet;
        }
        self.stopping.is_some()
    }

    /// Reads both streams; true when something moved.
    fn receive(&mut self, pipe: &mut dyn Pipe) -> Result<bool, Failure> {
        let mut moved = false;
        for (index, stream) in [Stream::Out, Stream::Err].into_iter().enumerate() {
            if !self.open[index] {
                continue;
            }
            match pipe.read(stream, &mut self.buf) {
                Ok(0) => {
                    self.open[index] = false;
                    moved = true;
                }
                Ok(n) => {
                    if self.began.is_none() {
                        self.greeting += n as u64;
                    }
                    self.take(stream, n);
                    if n == self.buf.len() {
                        self.buf.resize(RECEIVED, 0);
                    }
                    moved = true;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(self.broken(&error)),
            }
        }
        if self.out.begun() && self.began.is_none() {
            self.began = Some(Instant::now());
        }
        if self.open == [false, false] && self.end().is_none() {
            return Err(self.ended_early());
        }
        Ok(moved)
    }

    fn take(&mut self, stream: Stream, n: usize) {
        let side = &mut self.call.side;
        let data = &self.buf[..n];
        if stream == Stream::Err {
            self.err.push(data, &mut |_| {});
            return;
        }
        let rest = self.out.push(data, &mut |line| side.take_line(line));
        if self.opening.pty && !rest.is_empty() {
            self.err.push(&rest, &mut |_| {});
        }
    }

    /// The exit code, when both streams are complete.
    fn end(&self) -> Option<i32> {
        self.out.code().filter(|_| self.err.code().is_some())
    }

    fn finish(self, code: i32) -> Result<Reply, Failure> {
        if let Some((_, error)) = self.stopping {
            return Err(Failure::Final(error));
        }
        if let Some(error) = self.too_long() {
            return Err(Failure::Final(error));
        }
        Ok(Reply {
            code,
            body_sent: self.body_sent,
            received: self.out.received() + self.err.received(),
            stdout: self.out.into_content(),
            stderr: self.err.into_content(),
        })
    }

    /// Starts to end the script if it was cancelled or exceeds its time limit, and gives up if it does not end.
    fn check_limits(&mut self) -> Result<(), Failure> {
        if let Some((since, _)) = &self.stopping {
            let hung_up = self.opening.pty && !self.input_open;
            if since.elapsed() < GRACE && !hung_up {
                return Ok(());
            }
            return Err(self.broken(&io::Error::other("the script did not end")));
        }
        let host = self.peer.host.clone();
        if self.call.cancel.is_cancelled() {
            self.stopping = Some((Instant::now(), Error::Cancelled { host }));
        } else if let Some(error) = self.too_long() {
            self.stopping = Some((Instant::now(), error));
        } else if self.began.is_some_and(|began| began.elapsed() > self.call.timeout) {
            self.stopping = Some((Instant::now(), Error::Timeout { host, after: self.call.timeout }));
        } else if self.began.is_none() {
            if self.moved.elapsed() > START || self.opened.elapsed() > self.call.timeout.saturating_add(START)
            {
                return Err(self.broken(&io::Error::other("no answer")));
            }
            if self.greeting > GREETING {
                return Err(self.broken(&io::Error::other("it prints without end before the script begins")));
            }
        }
        Ok(())
    }

    /// The error of a script that has printed more than its caller can use.
    fn too_long(&self) -> Option<Error> {
        let most = self.call.keep as u64;
        let is_too_long = self.call.whole && self.out.received() > most;
        is_too_long.then(|| Error::TooLong { host: self.peer.host.clone(), most })
    }

    /// Both streams are at their ends without an end mark from the script.
    fn ended_early(&mut self) -> Failure {
        let said = [self.out.preamble(), self.err.preamble()].concat();
        let failed = self.opening.failed();
        let words = last_lines(&said).replace(&failed, "");
        let words = words.trim_end_matches("; ");
        if self.stopping.is_some() {
            return self.broken(&io::Error::other("the script was ended"));
        }
        let missing = self.opening.missing();
        if let Some(program) = words.split("; ").find_map(|line| line.strip_prefix(missing.as_str())) {
            let (host, program) = (self.peer.host.clone(), program.to_owned());
            return Failure::Final(Error::MissingProgram { host, program });
        }
        if find(&said, failed.as_bytes()).is_some() {
            let (host, path) = (self.peer.host.clone(), "the script and its files".to_owned());
            return Failure::Final(Error::Transfer { host, path, reason: words.to_owned() });
        }
        if self.opening.sudo && (words.contains("sudo") || words.contains("Sorry, ")) {
            return self.no_root(words.to_owned());
        }
        self.broken(&io::Error::other(format!("the host ended the session; {words}")))
    }

    fn no_root(&self, reason: String) -> Failure {
        Failure::Final(Error::Sudo { host: self.peer.host.clone(), user: self.peer.user.clone(), reason })
    }

    /// The error for a connection that can no longer be used.
    fn broken(&mut self, error: &io::Error) -> Failure {
        if let Some((_, error)) = self.stopping.take() {
            return Failure::Final(error);
        }
        if self.prelude == Prelude::Sent {
            return Failure::Final(Error::Lost { host: self.peer.host.clone(), reason: error.to_string() });
        }
        Failure::NotBegun(error.to_string())
    }
}
