//! An operator under test.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::control_plane::{ControlPlane, free_port};

/// A running operator with its hooks. It is killed when this is dropped.
pub(crate) struct Operator {
    dir: TempDir,
    child: Child,
    port: u16,
}

/// Hooks and flags of an operator that does not run yet.
pub(crate) struct Setup {
    dir: TempDir,
    flags: Vec<String>,
    kubeconfig: PathBuf,
    /// The command that runs the operator, before its own arguments.
    wrapper: Vec<String>,
}

impl Setup {
    pub(crate) fn new(plane: &ControlPlane) -> Self {
        let dir = TempDir::new().unwrap();
        fs::create_dir(dir.path().join("hooks")).unwrap();
        Self { dir, flags: Vec::new(), kubeconfig: plane.kubeconfig(), wrapper: Vec::new() }
    }

    /// A hook in bash: `config` is what it prints for `--config`, `body` what it does. `$OUT` is a directory to write
    /// to, and `keep` copies the binding context there, numbered.
    pub(crate) fn hook(self, name: &str, config: &str, body: &str) -> Self {
        let text = hook_text(&self.out(), name, config, body);
        self.program(name, &text)
    }

    /// A hook with this text.
    pub(crate) fn program(self, name: &str, text: &str) -> Self {
        fs::create_dir_all(self.out()).unwrap();
        write_program(&self.hooks_dir().join(name), text);
        self
    }

    pub(crate) fn hooks_dir(&self) -> PathBuf {
        self.dir.path().join("hooks")
    }

    pub(crate) fn tmp_dir(&self) -> PathBuf {
        self.dir.path().join("tmp")
    }

    /// Runs the operator by a program that becomes it.
    pub(crate) fn wrapper(mut self, words: &[&str]) -> Self {
        self.wrapper = words.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    pub(crate) fn flag(mut self, flag: &str) -> Self {
        self.flags.push(flag.to_owned());
        self
    }

    pub(crate) fn kubeconfig(mut self, path: PathBuf) -> Self {
        self.kubeconfig = path;
        self
    }

    pub(crate) fn out(&self) -> PathBuf {
        self.dir.path().join("out")
    }

    /// Starts the operator; it listens before this returns.
    pub(crate) fn start(self) -> Operator {
        let port = free_port();
        let log = fs::File::create(self.dir.path().join("log")).unwrap();
        let words = self.wrapper.iter().map(String::as_str).chain([env!("CARGO_BIN_EXE_shell-operator")]);
        let words: Vec<&str> = words.collect();
        let child = Command::new(words[0])
            .args(&words[1..])
            .arg("start")
            .arg("--hooks-dir")
            .arg(self.hooks_dir())
            // Relative: hooks run in other directories.
            .args(["--tmp-dir", "tmp"])
            .arg("--debug-unix-socket")
            .arg(self.dir.path().join("socket"))
            .args(["--listen-address", "127.0.0.1", "--listen-port", &port.to_string(), "--log-type", "json"])
            .args(&self.flags)
            .current_dir(self.dir.path())
            .env("KUBECONFIG", &self.kubeconfig)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        Operator { dir: self.dir, child, port }
    }
}

impl Operator {
    /// The binding contexts that a hook kept, parsed, in order.
    pub(crate) fn contexts(&self, hook: &str) -> Vec<serde_json::Value> {
        self.context_files(hook).iter().map(|text| serde_json::from_str(text).unwrap()).collect()
    }

    /// All contexts of all runs of a hook in one list.
    pub(crate) fn all_contexts(&self, hook: &str) -> Vec<serde_json::Value> {
        self.contexts(hook).into_iter().flat_map(|run| run.as_array().unwrap().clone()).collect()
    }

    pub(crate) fn context_files(&self, hook: &str) -> Vec<String> {
        let mut paths: Vec<PathBuf> = fs::read_dir(self.out())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(&format!("{hook}.")))
            .collect();
        paths.sort();
        paths.iter().map(|path| fs::read_to_string(path).unwrap()).collect()
    }

    pub(crate) fn out(&self) -> PathBuf {
        self.dir.path().join("out")
    }

    pub(crate) fn hooks_dir(&self) -> PathBuf {
        self.dir.path().join("hooks")
    }

    /// Text of a file that a hook wrote to `$OUT`.
    pub(crate) fn file(&self, name: &str) -> String {
        fs::read_to_string(self.out().join(name)).unwrap_or_default()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.path().join("socket")
    }

    /// Replaces or adds a hook while the operator runs; see [`Setup::hook`].
    pub(crate) fn put_hook(&self, name: &str, config: &str, body: &str) {
        // As editors do it: the file is there whole or not at all.
        let unfinished = self.dir.path().join("unfinished");
        write_program(&unfinished, &hook_text(&self.out(), name, config, body));
        fs::rename(unfinished, self.hooks_dir().join(name)).unwrap();
    }

    /// Number of files of runs; the operator's own are in directories.
    pub(crate) fn tmp_files(&self) -> usize {
        let is_file = |entry: &std::io::Result<fs::DirEntry>| entry.as_ref().unwrap().path().is_file();
        fs::read_dir(self.dir.path().join("tmp")).map_or(0, |entries| entries.filter(is_file).count())
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The body of an answer, or the status when it is not 200.
    pub(crate) fn get(&self, path: &str) -> Result<String, String> {
        http_get(self.port, path)
    }

    /// Waits until `done` holds; panics with the log when it never does.
    pub(crate) fn wait_for(&self, what: &str, done: impl FnMut(&Self) -> bool) {
        self.wait_long_for(Duration::from_secs(40), what, done);
    }

    pub(crate) fn wait_long_for(&self, time: Duration, what: &str, mut done: impl FnMut(&Self) -> bool) {
        let until = Instant::now() + time;
        while !done(self) {
            assert!(Instant::now() < until, "{what} did not happen; the log:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until the runs at start are done.
    pub(crate) fn wait_ready(&self) {
        self.wait_for("readiness", |operator| operator.get("/readyz").is_ok());
    }

    /// Sends SIGTERM and waits for the end; the exit code and how long it took.
    pub(crate) fn stop(&mut self) -> (Option<i32>, Duration) {
        let start = Instant::now();
        signal(self.pid(), "TERM");
        let status = self.child.wait().unwrap();
        (status.code(), start.elapsed())
    }

    /// Waits for an end of its own.
    pub(crate) fn wait_for_end(&mut self) -> Option<i32> {
        let until = Instant::now() + Duration::from_secs(40);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < until, "the operator did not end; the log:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Operator {
    #[expect(clippy::print_stderr, reason = "what the operator said tells why the test failed")]
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("{}", self.log());
        }
    }
}

/// The text of a hook in bash; see [`Setup::hook`].
///
/// Runs of a hook with several queues are concurrent: file names contain the process id.
pub(crate) fn hook_text(out: &Path, name: &str, config: &str, body: &str) -> String {
    format!(
        "#!/bin/bash\nif [ \"$1\" = --config ]; then cat <<'CONFIG'\n{config}\nCONFIG\nexit 0; fi\n\
         OUT={out}\nkeep() {{ n=$(ls $OUT | grep -c '^{name}[.]'); cp $BINDING_CONTEXT_PATH $OUT/.{name}.$$; mv $OUT/.{name}.$$ $OUT/{name}.$(printf %03d $n).$$; }}\n{body}\n",
        out = out.display()
    )
}

/// A hook that is run at once. Another process writes it: a file that this one has open, if only in a child that another
/// test is about to start, cannot be run (execve(2), ETXTBSY).
pub(crate) fn write_program(path: &Path, text: &str) {
    let mut writer = Command::new("sh")
        .args(["-c", "cat >\"$1\" && chmod 755 \"$1\"", "sh"])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    writer.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(writer.wait().unwrap().success());
}

pub(crate) fn signal(pid: u32, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status().unwrap();
    assert!(status.success());
}

fn http_get(port: u16, path: &str) -> Result<String, String> {
    use std::io::Read;
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).map_err(|error| error.to_string())?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(|error| error.to_string())?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
    if head.starts_with("HTTP/1.1 200") { Ok(body.to_owned()) } else { Err(head.to_owned()) }
}

/// Runs the operator's program with arguments to its end.
pub(crate) fn run_program(arguments: &[&str], directory: &Path) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_shell-operator"))
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}
