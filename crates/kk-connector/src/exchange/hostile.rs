//! Hosts that lie: their side of the conversation is made up here, and must end in an error within bounds.

use std::{
    cell::Cell,
    rc::Rc,
    time::{Duration, Instant},
};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{frame::LONGEST_LINE, *};

/// The time of a call.
const LIMIT: Duration = Duration::from_millis(300);

/// Says `begin`, then `again` for ever, on standard output; takes all that it gets.
struct Liar {
    begin: Vec<u8>,
    again: Vec<u8>,
    /// Bytes that it got rid of before the call was given up: its end is read whatever is printed.
    said: Rc<Cell<usize>>,
    clock: Instant,
}

impl Pipe for Liar {
    fn read(&mut self, stream: Stream, buf: &mut [u8]) -> io::Result<usize> {
        if stream == Stream::Err {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let text = if self.begin.is_empty() { &self.again } else { &self.begin };
        if text.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let n = text.len().min(buf.len());
        buf[..n].copy_from_slice(&text[..n]);
        if self.begin.is_empty() {
            self.again.rotate_left(n);
        } else {
            self.begin.drain(..n);
        }
        if self.clock.elapsed() < LIMIT {
            self.said.set(self.said.get() + n);
        }
        Ok(n)
    }

    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        Ok(data.len())
    }

    fn mid_packet(&self) -> bool {
        false
    }

    fn close_input(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn wait(&mut self, _timeout: Duration, _sending: bool) -> io::Result<()> {
        std::thread::sleep(Duration::from_millis(1));
        Ok(())
    }
}

fn peer() -> Peer {
    Peer { host: "node1".into(), user: "root".into() }
}

fn call(side: Side) -> Call {
    let mut call = Call::new("seq 500".into(), LIMIT, CancellationToken::new());
    call.side = side;
    call
}

/// What comes of a call when the host says this (`@` stands for the call's random word), how much it got rid of, and how long
/// that took.
fn talk(mut call: Call, begin: &str, again: &str) -> (String, usize, Duration) {
    let opening = Opening::new(&Root::Already, &call, &[]).unwrap();
    let text = |text: &str| text.replace('@', &format!("kk-{}", opening.nonce)).into_bytes();
    let said = Rc::default();
    let mut pipe =
        Liar { begin: text(begin), again: text(again), said: Rc::clone(&said), clock: Instant::now() };
    let clock = Instant::now();
    let error = match drive(&mut pipe, &mut call, opening, &peer()) {
        Err(Failure::Final(error)) => error.to_string(),
        Err(Failure::NotBegun(reason)) => reason,
        Ok(reply) => panic!("{reply:?}"),
    };
    (error, said.get(), clock.elapsed())
}

fn body(files: usize) -> (tempfile::NamedTempFile, Side) {
    let source = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(source.path(), "content").unwrap();
    let file = crate::UploadFile {
        source: source.path().into(),
        target: "/x".into(),
        mode: 0o644,
        sha256: String::new(),
    };
    let body = Body::new(&vec![file; files], None).unwrap();
    (source, Side::Body(body))
}

/// A receiver that never takes a line.
fn stuck() -> (mpsc::Receiver<String>, Side) {
    let (sender, receiver) = mpsc::channel(8);
    (receiver, Side::Lines(Lines::new(sender)))
}

#[test]
fn a_host_that_prints_without_end_ends_in_an_error_that_says_so() {
    let (_source, wants) = body(3);
    let (_receiver, unheard) = stuck();
    let begun = "@-begin\n";
    for (case, side, begin, again, why, most) in [
        ("greeting", Side::Quiet, "", "welcome ", "prints without end", 2 << 20),
        ("greeting of lines", Side::Quiet, "", "welcome\n", "prints without end", 2 << 20),
        (
            "wants",
            wants,
            "@-begin\nwant 0\nwant 9\nwant 1\n",
            "want 0\n",
            "asks for it a second time",
            256 << 20,
        ),
        ("lines without receiver", unheard, begun, "\n", "no end after 0.3 s", 1 << 20),
    ] {
        println!("case {case}");
        let (error, said, took) = talk(call(side), begin, again);
        assert!(error.contains(why), "{case}: {error}");
        assert!(took < Duration::from_secs(20), "{case}: {took:?}");
        assert!(said <= most, "{case}: {said}");
    }
}

#[test]
fn an_answer_that_is_useless_in_part_ends_at_its_limit() {
    let mut call = call(Side::Quiet);
    (call.timeout, call.keep, call.whole) = (Duration::from_hours(1), 1 << 20, true);
    let (error, _, took) = talk(call, "@-begin\n", "noise\n");
    assert_eq!(error, "the output of node1 exceeds 1048576 bytes");
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[test]
fn an_answer_may_be_as_long_as_its_limit() {
    for (keep, whole, wanted) in [
        (1892, true, None),
        (1891, true, Some("the output of node1 exceeds 1891 bytes")),
        (1891, false, None),
    ] {
        let mut call = call(Side::Quiet);
        (call.timeout, call.keep, call.whole) = (Duration::from_mins(1), keep, whole);
        let opening = Opening::new(&Root::Already, &call, &[]).unwrap();
        let mut pipe = crate::local::ChildPipe::start(&opening.command, &mut None).unwrap();
        let error = match drive(&mut pipe, &mut call, opening, &peer()) {
            Ok(reply) => {
                assert_eq!(reply.stdout.len(), keep);
                None
            }
            Err(Failure::Final(error)) => Some(error.to_string()),
            Err(Failure::NotBegun(reason)) => panic!("{reason}"),
        };
        assert_eq!(error.as_deref(), wanted, "{keep} {whole}");
    }
}

#[test]
fn a_line_without_end_arrives_in_pieces() {
    let (sender, mut receiver) = mpsc::channel(8);
    let mut call = call(Side::Lines(Lines::new(sender)));
    call.timeout = Duration::from_secs(5);
    let cancel = call.cancel.clone();
    let receiving = std::thread::spawn(move || {
        let lines = std::iter::from_fn(move || receiver.blocking_recv());
        let pieces: Vec<usize> = lines.map(|line| line.len()).take(3).collect();
        cancel.cancel();
        pieces
    });
    let (error, ..) = talk(call, "@-begin\n", &"x".repeat(32 << 10));
    let pieces = receiving.join().unwrap();
    assert_eq!(pieces.len(), 3, "{error}");
    assert!(pieces.iter().all(|len| (LONGEST_LINE..LONGEST_LINE + (32 << 10)).contains(len)), "{pieces:?}");
}

#[test]
fn a_login_shell_that_prints_without_end_is_not_listened_to_for_ever() {
    let said = Rc::default();
    let mut pipe =
        Liar { begin: Vec::new(), again: vec![b'x'; 4096], said: Rc::clone(&said), clock: Instant::now() };
    let error = plain(&mut pipe, b"", Duration::from_mins(1)).map(|plain| plain.stdout.len()).unwrap_err();
    assert!(error.to_string().contains("without end"), "{error}");
    assert!(said.get() < 2 << 20, "{}", said.get());
}

#[test]
fn lines_wait_for_their_receiver_and_none_is_lost() {
    let (sender, mut receiver) = mpsc::channel(2);
    let mut call = call(Side::Lines(Lines::new(sender)));
    call.timeout = Duration::from_secs(20);
    let opening = Opening::new(&Root::Already, &call, &[]).unwrap();
    let mut pipe = crate::local::ChildPipe::start(&opening.command, &mut None).unwrap();
    let counting = std::thread::spawn(move || std::iter::from_fn(|| receiver.blocking_recv()).count());
    let reply = drive(&mut pipe, &mut call, opening, &peer()).unwrap();
    drop(call);
    assert_eq!((reply.code, counting.join().unwrap()), (0, 500));
}
