//! Moves the bytes of a call until its script has ended, was ended, or the connection is gone.

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
/// How long a script that was signalled may take to end.
const GRACE: Duration = Duration::from_secs(3);
/// How long the host may be silent before the script has begun. What it says meanwhile prolongs that, by the call's own time at
/// most.
const START: Duration = Duration::from_mins(1);
/// How much the host may say before the script has begun: the greeting of a login shell.
const GREETING: u64 = 1 << 20;
/// How much a command without the bootstrap may say.
const PLAIN: usize = 1 << 20;
/// How long to wait for the receiver of lines, which has more than it can take.
const RECEIVER: Duration = Duration::from_millis(1);
/// Sent at once; also the unit of progress messages.
const PIECE: usize = 256 << 10;
/// Received at once, at first: most calls only wait, and with a thousand of them more would be felt in memory.
const FIRST_RECEIVED: usize = 4 << 10;
/// Received at once by a call that has much to receive: what one packet of SSH holds.
const RECEIVED: usize = 32 << 10;

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The script cannot have begun: trying again on a new session is safe.
    NotBegun(String),
    /// The answer for the caller.
    Final(Error),
}

/// Carries out a call whose command has just been started behind `pipe`.
pub(crate) fn drive(
    pipe: &mut dyn Pipe,
    call: &mut Call,
    opening: Opening,
    peer: &Peer,
) -> Result<Reply, Failure> {
    if call.cancel.is_cancelled() {
        // It was so while its session was dialled: the script must not even begin.
        return Err(Failure::Final(Error::Cancelled { host: peer.host.clone() }));
    }
    let mut exchange = Exchange::new(call, opening, peer);
    loop {
        let sent = exchange.send(pipe)?;
        let delivered = exchange.is_delivered();
        // While the receiver of its lines is busy, the host has to wait.
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

/// Whether the input is closed now, or has to be closed again later.
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
    /// When the call was begun.
    opened: Instant,
    /// When a byte was last sent or received.
    moved: Instant,
    /// Bytes that were received before the begin mark, and with it.
    greeting: u64,
    /// Why and since when the script is being ended.
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
            // A terminal has one stream; what is behind the end mark of stdout is stderr.
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
            // A script that has ended takes no input. Whether it did, or the connection broke, shows when reading.
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
                // It is not sent again, and with hundreds of calls at once it would be felt in memory.
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

    /// Puts the next bytes into `outgoing`; false when there are none now.
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

    /// On a terminal, input before sudo asks for it would be thrown away: waits for the prompt and for the shell.
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

    /// Whether the lines that were received have been handed out.
    fn is_delivered(&mut self) -> bool {
        if self.call.side.is_delivered() {
            return true;
        }
        if self.stopping.is_some() {
            // The end of the script is read to the end of its streams, whoever receives.
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
        Ok(Reply {
            code,
            body_sent: self.body_sent,
            received: self.out.received() + self.err.received(),
            dropped: self.out.dropped(),
            stdout: self.out.into_content(),
            stderr: self.err.into_content(),
        })
    }

    /// Starts to end the script when it must, and gives up when that takes too long.
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

    /// Both streams are at their ends and the script has not said how it ended.
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

    /// The connection is of no more use.
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
