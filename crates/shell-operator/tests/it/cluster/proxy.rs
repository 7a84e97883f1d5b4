//! A proxy to the API server that tests can disturb.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::cluster::control_plane::ControlPlane;
use crate::cluster::programs;

/// `kubectl proxy`, which accepts plain HTTP, and in front of it a proxy that disturbs watches.
pub(crate) struct Proxy {
    kubectl: Child,
    port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// Watches are accepted and never hear anything.
    deaf: AtomicBool,
    /// Nothing gets through.
    cut: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
    /// The fault of requests that contain a certain text.
    fault: Mutex<Option<(String, Fault)>>,
    /// The first lines of all requests.
    seen: Mutex<Vec<String>>,
}

/// A fault of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// It is answered with this status.
    Status(u16),
    /// A list has pages of one object, and the second one is cut.
    SecondPage,
    /// It waits until nothing is disturbed any more.
    Held,
}

impl Proxy {
    pub(crate) fn start(plane: &ControlPlane) -> Self {
        let mut kubectl = Command::new(programs::find("kubernetes-", "kubectl"))
            .args(["proxy", "--port=0"])
            .env("KUBECONFIG", plane.kubeconfig())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(kubectl.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let upstream: u16 = line.trim().rsplit(':').next().unwrap().parse().unwrap();
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let (port, state) = (listener.local_addr().unwrap().port(), Arc::new(State::default()));
        let shared = state.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let state = shared.clone();
                std::thread::spawn(move || state.serve(client, upstream));
            }
        });
        Self { kubectl, port, state }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// From now on watches are accepted and never receive anything.
    pub(crate) fn make_deaf(&self) {
        self.state.deaf.store(true, Ordering::SeqCst);
    }

    /// From now on this happens to requests with this text.
    pub(crate) fn disturb(&self, text: &str, fault: Fault) {
        *self.state.fault.lock().unwrap() = Some((text.to_owned(), fault));
    }

    /// Requests get through again.
    pub(crate) fn disturb_no_more(&self) {
        *self.state.fault.lock().unwrap() = None;
    }

    /// The number of requests with this text, whatever happened to them.
    pub(crate) fn requests(&self, text: &str) -> usize {
        self.state.seen.lock().unwrap().iter().filter(|line| line.contains(text)).count()
    }

    /// Cuts all connections; new ones are cut as well until [`Proxy::mend`].
    pub(crate) fn cut(&self) {
        self.state.cut.store(true, Ordering::SeqCst);
        for stream in self.state.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub(crate) fn mend(&self) {
        self.state.cut.store(false, Ordering::SeqCst);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.kubectl.kill();
        let _ = self.kubectl.wait();
    }
}

impl State {
    /// The fault of this request now.
    fn fault_of(&self, request: &str) -> Option<Fault> {
        let fault = self.fault.lock().unwrap();
        fault.as_ref().filter(|(text, _)| request.contains(text.as_str())).map(|(_, fault)| *fault)
    }

    /// Forwards requests, one after the other. None of them has a body here except patches, which no test sends.
    fn serve(&self, mut client: TcpStream, upstream: u16) {
        if self.cut.load(Ordering::SeqCst) {
            return;
        }
        let mut server = TcpStream::connect(("127.0.0.1", upstream)).unwrap();
        self.open.lock().unwrap().extend([client.try_clone().unwrap(), server.try_clone().unwrap()]);
        let (mut answers, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut answers, &mut to_client);
            let _ = to_client.shutdown(Shutdown::Both);
        });
        let mut buffer = [0; 8192];
        while let Ok(length @ 1..) = client.read(&mut buffer) {
            let request = String::from_utf8_lossy(&buffer[..length]);
            self.seen.lock().unwrap().extend(request.lines().next().map(str::to_owned));
            if self.deaf.load(Ordering::SeqCst) && request.contains("watch=1") {
                let head =
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
                client.write_all(head.as_bytes()).unwrap();
                // Until the client closes the connection.
                while matches!(client.read(&mut buffer), Ok(1..)) {}
                break;
            }
            match self.fault_of(&request) {
                Some(Fault::Status(code)) => {
                    let body = format!(
                        r#"{{"kind":"Status","apiVersion":"v1","status":"Failure","message":"disturbed","code":{code}}}"#
                    );
                    let head = format!(
                        "HTTP/1.1 {code} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                        body.len()
                    );
                    client.write_all((head + &body).as_bytes()).unwrap();
                    continue;
                }
                Some(Fault::SecondPage) if request.contains("continue=") => break,
                Some(Fault::SecondPage) => {
                    let small = request.replace("limit=500", "limit=1");
                    if server.write_all(small.as_bytes()).is_err() {
                        break;
                    }
                    continue;
                }
                Some(Fault::Held) => {
                    while self.fault_of(&request).is_some() {
                        std::thread::sleep(Duration::from_millis(20));
                    }
                }
                None => {}
            }
            if server.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        let _ = server.shutdown(Shutdown::Both);
    }
}
