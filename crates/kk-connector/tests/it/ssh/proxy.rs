//! A network between kk and a real sshd that can freeze: connections stay open, and no bytes pass.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

pub(crate) struct Proxy {
    pub(crate) port: u16,
    wire: Arc<Wire>,
}

struct Wire {
    /// How many bytes of the host still pass, in all connections together. After that, none pass in either direction.
    left: AtomicU64,
    carried: AtomicU64,
    /// How long the host's next bytes are delayed.
    hold: Mutex<Duration>,
}

impl Proxy {
    /// Starts a proxy in front of a port of this machine.
    pub(crate) fn start(target: u16, bytes: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let wire = Arc::new(Wire {
            left: AtomicU64::new(bytes),
            carried: AtomicU64::default(),
            hold: Mutex::default(),
        });
        let shared = wire.clone();
        // The thread ends with the test executable.
        thread::spawn(move || {
            for near in listener.incoming() {
                let (near, far) = (near.unwrap(), TcpStream::connect(("127.0.0.1", target)).unwrap());
                let (from, to) = (near.try_clone().unwrap(), far.try_clone().unwrap());
                let (up, down) = (shared.clone(), shared.clone());
                thread::spawn(move || up.carry(from, to, false));
                thread::spawn(move || down.carry(far, near, true));
            }
        });
        Self { port, wire }
    }

    /// Bytes of the host that passed.
    pub(crate) fn carried(&self) -> u64 {
        self.wire.carried.load(SeqCst)
    }

    /// From now on no bytes pass.
    pub(crate) fn freeze(&self) {
        self.wire.left.store(0, SeqCst);
    }

    /// Delays the host's next bytes.
    pub(crate) fn hold_next(&self, time: Duration) {
        *self.wire.hold.lock().unwrap() = time;
    }
}

impl Wire {
    fn carry(&self, mut from: TcpStream, mut to: TcpStream, of_host: bool) {
        let mut buf = vec![0; 64 << 10];
        while let Ok(n) = from.read(&mut buf) {
            if n == 0 {
                break;
            }
            let n = if of_host {
                thread::sleep(std::mem::take(&mut *self.hold.lock().unwrap()));
                let left = self.left.load(SeqCst);
                let n = n.min(usize::try_from(left).unwrap_or(n));
                self.left.store(left.saturating_sub(n as u64), SeqCst);
                self.carried.fetch_add(n as u64, SeqCst);
                n
            } else {
                n
            };
            if to.write_all(&buf[..n]).is_err() {
                break;
            }
            while self.left.load(SeqCst) == 0 {
                thread::sleep(Duration::from_millis(50));
                if from.peek(&mut [0]).is_ok_and(|n| n == 0) {
                    break;
                }
            }
        }
        // The end of a connection is passed on only while the network works.
        if self.left.load(SeqCst) > 0 {
            let _ = to.shutdown(Shutdown::Both);
        }
    }
}
