//! Running programs with a limit in time. Output goes to files in the artefacts directory, so that nothing blocks on a
//! full pipe and a failure can be looked into; a process that outlives its limit or its scenario is ended with its
//! own group, and nothing else is. When the scenarios themselves are killed, the kernel ends what they run.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::report;

const POLL: Duration = Duration::from_millis(10);
/// Bytes that a program may print; one that prints without end shall not fill the disk.
const MOST_OUTPUT: u64 = 256 << 20;

/// What a program reads.
#[derive(Clone, Debug)]
enum Input {
    Nothing,
    Text(String),
    File(PathBuf),
}

/// What is to run.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    program: OsString,
    args: Vec<OsString>,
    env: Vec<(String, OsString)>,
    directory: Option<PathBuf>,
    stdin: Input,
    limit: Duration,
}

impl Job {
    pub(crate) fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            directory: None,
            stdin: Input::Nothing,
            limit: Duration::from_mins(2),
        }
    }

    pub(crate) fn args<S: Into<OsString>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.env.push((name.to_owned(), value.into()));
        self
    }

    /// The directory that it runs in.
    pub(crate) fn directory(mut self, directory: &Path) -> Self {
        self.directory = Some(directory.to_owned());
        self
    }

    /// What it reads; without it, nothing.
    pub(crate) fn stdin(mut self, text: impl Into<String>) -> Self {
        self.stdin = Input::Text(text.into());
        self
    }

    /// The file that it reads.
    pub(crate) fn stdin_file(mut self, file: &Path) -> Self {
        self.stdin = Input::File(file.to_owned());
        self
    }

    /// How long it may take; two minutes without it.
    pub(crate) fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    fn shown(&self) -> String {
        let words = std::iter::once(&self.program).chain(&self.args);
        let text = words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
        if text.len() <= 300 { text } else { format!("{}…", text.chars().take(300).collect::<String>()) }
    }

    /// Starts it. `files` is the path of its output files without their extension, `deadline` the scenario's.
    pub(crate) fn start(self, files: &Path, deadline: Instant) -> Result<Running> {
        let (out, err) = (files.with_extension("out"), files.with_extension("err"));
        let create =
            |path: &Path| File::create(path).with_context(|| format!("cannot write {}", path.display()));
        let stdin = match &self.stdin {
            Input::Nothing => Stdio::null(),
            Input::File(path) => {
                Stdio::from(File::open(path).with_context(|| format!("cannot read {}", path.display()))?)
            }
            Input::Text(text) => {
                let path = files.with_extension("in");
                fs::write(&path, text)?;
                Stdio::from(File::open(path)?)
            }
        };
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM", "--"]).arg(&self.program);
        command.args(&self.args).envs(self.env.iter().map(|(name, value)| (name, value)));
        command.stdin(stdin).stdout(create(&out)?).stderr(create(&err)?).process_group(0);
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        let begun = Instant::now();
        let child = command.spawn().with_context(|| format!("cannot start `{}`", self.shown()))?;
        let ends = deadline.min(begun + self.limit);
        Ok(Running { child, shown: self.shown(), out, err, begun, ends, ended: None })
    }
}

/// A program that runs. Dropped, it is ended.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    shown: String,
    out: PathBuf,
    err: PathBuf,
    begun: Instant,
    ends: Instant,
    ended: Option<ExitStatus>,
}

impl Running {
    /// Where its stdout goes.
    pub(crate) fn stdout_file(&self) -> &Path {
        &self.out
    }

    /// Whether it has ended. Errors: its time is over.
    pub(crate) fn has_ended(&mut self) -> Result<bool> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait()?;
        }
        if self.ended.is_none() && Instant::now() > self.ends {
            let why = format!("did not end within {} s", self.begun.elapsed().as_secs());
            return Err(self.given_up(&why));
        }
        let written = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
        if written(&self.out) + written(&self.err) > MOST_OUTPUT {
            return Err(self.given_up(&format!("printed more than {MOST_OUTPUT} bytes")));
        }
        Ok(self.ended.is_some())
    }

    /// Ends it, and tells why and what it said last.
    fn given_up(&mut self, why: &str) -> anyhow::Error {
        self.end_group();
        anyhow!("`{}` {why} and was ended; it said last:\n{}", self.shown, last_lines_of(&self.err))
    }

    /// Sends a signal to the program itself, not to its children.
    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        kill_process(self.pid()?, signal).with_context(|| format!("cannot signal `{}`", self.shown))
    }

    /// Bytes of memory that the program itself has used at most since its start; `None` if it has ended.
    pub(crate) fn peak_memory(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        Some(peak.split_whitespace().next()?.parse::<u64>().ok()? << 10)
    }

    fn pid(&self) -> Result<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).context("a process has an id above 0")
    }

    /// Waits for its end.
    pub(crate) fn wait(mut self) -> Result<Finished> {
        while !self.has_ended()? {
            sleep(POLL);
        }
        let read = |path: &Path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Ok(Finished {
            shown: self.shown.clone(),
            code: self.ended.and_then(|status| status.code()),
            stdout: read(&self.out)?,
            stderr: read(&self.err)?,
            took: self.begun.elapsed(),
        })
    }

    fn end_group(&mut self) {
        if let Ok(pid) = self.pid() {
            // It may have ended by itself in between.
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.ended.is_none() {
            self.end_group();
        }
    }
}

/// The end of a file, however long it is.
fn last_lines_of(path: &Path) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let size = file.metadata()?.len();
        file.seek(SeekFrom::Start(size.saturating_sub(64 << 10)))?;
        let mut end = Vec::new();
        file.read_to_end(&mut end)?;
        Ok(end)
    };
    report::last_lines(&String::from_utf8_lossy(&read().unwrap_or_default()))
}

/// A program that has ended.
#[derive(Clone, Debug)]
pub(crate) struct Finished {
    shown: String,
    /// `None`: by a signal.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

impl Finished {
    /// Its stdout. Errors: it failed.
    pub(crate) fn ok(self) -> Result<String> {
        let code = self.code.map_or_else(|| "a signal".to_owned(), |code| format!("code {code}"));
        ensure!(
            self.code == Some(0),
            "`{}` ended with {code}:\n{}{}",
            self.shown,
            report::last_lines(&self.stdout),
            report::last_lines(&self.stderr)
        );
        Ok(self.stdout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Result<Finished> {
        let directory =
            std::env::temp_dir().join(format!("kk-e2e-process-{}-{}", std::process::id(), script.len()));
        fs::create_dir_all(&directory)?;
        let job = Job::new("sh").args(["-c", script]).stdin("a line").limit(limit);
        let result = job.start(&directory.join("job"), Instant::now() + Duration::from_mins(1))?.wait();
        fs::remove_dir_all(&directory)?;
        result
    }

    #[test]
    fn output_and_code_are_kept_apart() {
        let done = shell("cat; echo wrong >&2; exit 3", Duration::from_secs(10)).unwrap();
        assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (Some(3), "a line", "wrong\n"));
        assert!(done.ok().unwrap_err().to_string().contains("code 3"));
    }

    #[test]
    fn what_takes_too_long_is_ended_with_its_children() {
        let begun = Instant::now();
        let error =
            shell("sleep 61 & echo begun >&2; wait", Duration::from_millis(300)).unwrap_err().to_string();
        assert!(error.contains("did not end") && error.contains("begun"), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
}
