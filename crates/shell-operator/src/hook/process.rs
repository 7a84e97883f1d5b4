//! Running a hook's program: its own process group, its output into the log, an end when time is up.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use super::children::{self, Entry};
use super::{LineLog, usage};
use crate::metrics::RunUsage;

/// Most of a program's stderr that is kept for the error's text, in bytes.
const KEPT_STDERR: usize = 8 * 1024;
/// Longest line that is kept in memory, in bytes; the rest of a longer one is dropped.
const LONGEST_LINE: usize = 2 << 20;
/// Time between SIGTERM and SIGKILL.
pub(crate) const GRACE: Duration = Duration::from_secs(10);
/// How long output is read after the program has ended: children it left behind may hold the pipe open.
const AFTER_END: Duration = Duration::from_secs(1);

/// Where hooks written for the first releases find the directory with all hooks.
const OLD_HOOKS_DIR: &str = "WORKING_DIR";

/// `WORKING_DIR` for a hook, unless the operator has a variable of that common name already.
pub fn old_hooks_dir(directory: &Path) -> Option<(&'static str, PathBuf)> {
    std::env::var_os(OLD_HOOKS_DIR).is_none().then(|| (OLD_HOOKS_DIR, directory.to_owned()))
}

/// A program to run.
#[derive(Debug)]
pub struct Program<'a> {
    /// The file.
    pub path: &'a Path,
    /// Its arguments.
    pub arguments: &'a [&'a str],
    /// Where it runs.
    pub directory: &'a Path,
    /// What is added to the operator's own environment.
    pub environment: Vec<(&'static str, PathBuf)>,
    /// Time after which it is ended.
    pub timeout: Option<Duration>,
}

/// How a program ended.
#[derive(Debug)]
pub struct Ended {
    /// The exit status.
    pub status: ExitStatus,
    /// The end of what it wrote to stderr.
    pub stderr: String,
    /// What it cost.
    pub usage: RunUsage,
}

/// Why there is no exit status to judge by.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// It could not be started.
    #[error("cannot run {}: {why}", .path.display())]
    Start {
        /// The program.
        path: PathBuf,
        /// Why, and what to do.
        why: String,
    },
    /// It took longer than it may.
    #[error("it did not end within {0:?} (settings.executionTimeout) and was killed")]
    Timeout(Duration),
    /// The operator stops, and the time that it leaves to hooks is over.
    #[error("it was ended because the operator stops; --shutdown-timeout gives it more time")]
    Stopped,
    /// Its end could not be waited for.
    #[error("cannot wait for its end: {0}")]
    Wait(#[from] std::io::Error),
}

impl Program<'_> {
    /// Runs the program to its end, or until its time is up or `end` is cancelled: then it and its children get
    /// SIGTERM, and SIGKILL after 10 s.
    pub async fn run(
        &self,
        stdout: LineLog,
        stderr: LineLog,
        end: &CancellationToken,
    ) -> Result<Ended, ProcessError> {
        let started = Instant::now();
        let (mut child, entry) = self.spawn()?;
        let no_more = CancellationToken::new();
        let out = child.stdout.take().map(|pipe| tokio::spawn(copy_lines(pipe, stdout, no_more.clone())));
        let err = child.stderr.take().map(|pipe| tokio::spawn(copy_lines(pipe, stderr, no_more.clone())));
        let (status, usage) = self.wait(&mut child, &entry, end).await;
        let usage = RunUsage { wall: started.elapsed(), ..usage };
        entry.waited_for();
        let copied = async { (finish(out).await, finish(err).await) };
        tokio::pin!(copied);
        let (_, stderr) = if let Ok(texts) = tokio::time::timeout(AFTER_END, &mut copied).await {
            texts
        } else {
            no_more.cancel();
            copied.await
        };
        Ok(Ended { status: status?, stderr, usage })
    }

    fn spawn(&self) -> Result<(Child, Entry), ProcessError> {
        let mut command = Command::new(self.path);
        command
            .args(self.arguments)
            .current_dir(self.directory)
            .envs(self.environment.iter().map(|(name, value)| (name, value.as_os_str())))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        children::spawn(&mut command).map_err(|error| ProcessError::Start {
            path: self.path.to_owned(),
            why: explain(self.path, &error),
        })
    }

    async fn wait(
        &self,
        child: &mut Child,
        entry: &Entry,
        end: &CancellationToken,
    ) -> (Result<ExitStatus, ProcessError>, RunUsage) {
        let time_is_up = async {
            match self.timeout {
                Some(timeout) => tokio::time::sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        let mut usage = RunUsage::default();
        let ended = async {
            if let Err(error) = usage::until_end(entry.pid(), &mut usage).await {
                tracing::warn!(error = error.to_string(), "what the run costs is not known");
            }
            child.wait().await
        };
        let reason = tokio::select! {
            status = ended => return (status.map_err(ProcessError::Wait), usage),
            () = time_is_up => ProcessError::Timeout(self.timeout.unwrap_or_default()),
            () = end.cancelled() => ProcessError::Stopped,
        };
        entry.signal(Signal::SIGTERM);
        // Without an end in time SIGKILL follows; nothing is known then of what it cost.
        let _ = tokio::time::timeout(GRACE, usage::until_end(entry.pid(), &mut usage)).await;
        // Also what it left behind must not run beside the next attempt. Its number is its own until it is waited for.
        entry.signal(Signal::SIGKILL);
        let _ = child.wait().await;
        (Err(reason), usage)
    }
}

/// What the system's error means for a hook's author.
pub(super) fn explain(path: &Path, error: &std::io::Error) -> String {
    let begin = std::fs::read(path).map(|bytes| bytes[..bytes.len().min(200)].to_vec()).unwrap_or_default();
    let text = String::from_utf8_lossy(&begin);
    let hint = match error.raw_os_error() {
        Some(8) if text.trim_start().starts_with("#!") => {
            "hint: the first line must begin with '#!'; remove the blank lines or spaces before it"
        }
        Some(8) if text.is_empty() => "hint: the file is empty",
        Some(8) => "hint: it is neither a script that begins with '#!' nor a program for this machine",
        Some(13) => "hint: chmod +x it; for a ConfigMap volume set defaultMode: 0755",
        Some(2) if path.exists() && text.contains("\r\n") => {
            "hint: its lines end in CR LF, so the interpreter is not found; convert it to LF"
        }
        Some(2) if path.exists() && !interpreter_exists(&text) => {
            "hint: the interpreter in its first line does not exist"
        }
        _ => return error.to_string(),
    };
    format!("{error}; {hint}")
}

/// Whether the program that `#!` names is there; a program for this machine has none.
fn interpreter_exists(text: &str) -> bool {
    let line = text.strip_prefix("#!").and_then(|rest| rest.lines().next());
    line.and_then(|line| line.split_whitespace().next()).is_none_or(|program| Path::new(program).exists())
}

/// Logs the lines of `pipe` until its end, or until nobody wants more, and returns the end of its text.
async fn copy_lines(pipe: impl AsyncRead + Unpin, mut log: LineLog, no_more: CancellationToken) -> String {
    let mut reader = BufReader::new(pipe);
    let (mut line, mut kept) = (Vec::new(), Vec::new());
    loop {
        let read = tokio::select! {
            read = read_line(&mut reader, &mut line) => read,
            () = no_more.cancelled() => Ok(false),
        };
        let end_of_line = read.unwrap_or(false);
        if end_of_line || !line.is_empty() {
            log.line(&String::from_utf8_lossy(&line));
            kept.extend_from_slice(&line);
            kept.push(b'\n');
        }
        if !end_of_line {
            break;
        }
        if kept.len() > 2 * KEPT_STDERR {
            kept.drain(..kept.len() - KEPT_STDERR);
        }
        line.clear();
    }
    log.flush();
    String::from_utf8_lossy(&kept[kept.len().saturating_sub(KEPT_STDERR)..]).trim().to_owned()
}

/// Reads up to the end of the line. False when the stream ended before.
async fn read_line(reader: &mut (impl AsyncBufReadExt + Unpin), line: &mut Vec<u8>) -> std::io::Result<bool> {
    loop {
        let buffer = reader.fill_buf().await?;
        if buffer.is_empty() {
            return Ok(false);
        }
        let end = memchr::memchr(b'\n', buffer);
        let length = end.unwrap_or(buffer.len());
        line.extend_from_slice(&buffer[..length.min(LONGEST_LINE.saturating_sub(line.len()))]);
        let used = end.map_or(length, |end| end + 1);
        reader.consume(used);
        if end.is_some() {
            return Ok(true);
        }
    }
}

async fn finish(copier: Option<tokio::task::JoinHandle<String>>) -> String {
    match copier {
        Some(copier) => copier.await.unwrap_or_default(),
        None => String::new(),
    }
}

/// How long a hook may take to print its configuration.
#[derive(Clone, Copy)]
pub(super) struct ConfigTime {
    /// After this time a warning says what is waited for.
    pub(super) expected: Duration,
    /// After this time the hook is ended.
    pub(super) longest: Duration,
}

/// Runs `path --config` and returns what it printed on stdout, or why it failed.
pub(super) async fn ask_for_config(
    path: &Path,
    directory: &Path,
    time: ConfigTime,
) -> Result<String, String> {
    let mut command = Command::new(path);
    command
        .arg(OsStr::new("--config"))
        .current_dir(directory)
        .envs(old_hooks_dir(directory))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let (child, entry) = children::spawn(&mut command).map_err(|error| explain(path, &error))?;
    let slow = async {
        tokio::time::sleep(time.expected).await;
        tracing::warn!(hook = path.display().to_string(), "--config takes longer than {:?}", time.expected);
        std::future::pending().await
    };
    let answer = async {
        tokio::select! {
            output = child.wait_with_output() => output,
            never = slow => never,
        }
    };
    let output = tokio::time::timeout(time.longest, answer).await;
    if let Ok(Ok(_)) = &output {
        entry.waited_for();
    }
    match output {
        Err(_) => Err(format!("it did not answer --config within {:?}", time.longest)),
        Ok(Err(error)) => Err(error.to_string()),
        Ok(Ok(output)) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(Ok(output)) => {
            let text =
                |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(4096)]).trim().to_owned();
            let (out, err) = (text(&output.stdout), text(&output.stderr));
            Err(format!("--config ended with {}\nstdout: {out}\nstderr: {err}", output.status))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use rstest::rstest;

    use super::*;
    use crate::hook::Labels;
    use crate::log::{Format, Level, Logger};

    fn script(dir: &Path, text: &str) -> PathBuf {
        let path = dir.join("hook");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    async fn run(
        text: &str,
        timeout: Option<Duration>,
        stop: &CancellationToken,
    ) -> Result<Ended, ProcessError> {
        let dir = tempfile::tempdir().unwrap();
        let path = script(dir.path(), text);
        let logger = Logger::new(Format::Json, false, Level::Error, Box::new(std::io::sink()));
        let log = || LineLog::new(logger.clone(), &Labels::new(), "stdout", false);
        let environment = vec![("GIVEN", PathBuf::from("value"))];
        let program =
            Program { path: &path, arguments: &["arg"], directory: dir.path(), environment, timeout };
        program.run(log(), log(), stop).await
    }

    #[tokio::test]
    async fn arguments_environment_and_directory_are_given() {
        let text = "#!/bin/sh\n[ \"$1$GIVEN\" = argvalue ] && [ -x ./hook ] && exit 3\n";
        let ended = run(text, None, &CancellationToken::new()).await.unwrap();
        assert_eq!(ended.status.code(), Some(3));
    }

    #[tokio::test]
    async fn what_the_run_cost_is_known() {
        let text = "#!/bin/bash\nfor ((i = 0; i < 200000; i++)); do :; done\nsleep 0.2\n";
        let usage = run(text, None, &CancellationToken::new()).await.unwrap().usage;
        assert!(usage.wall >= Duration::from_millis(200), "{usage:?}");
        assert!(usage.user + usage.system > Duration::from_millis(10), "{usage:?}");
        assert!(usage.user + usage.system < usage.wall && usage.max_rss_bytes > 100_000, "{usage:?}");
    }

    #[tokio::test]
    async fn the_end_of_stderr_is_kept_and_no_more() {
        let text = "#!/bin/sh\nhead -c 3000000 /dev/zero | tr '\\0' x >&2\necho >&2; echo last >&2; exit 1\n";
        let ended = run(text, None, &CancellationToken::new()).await.unwrap();
        assert!(ended.stderr.ends_with("\nlast") && ended.stderr.len() <= KEPT_STDERR);
    }

    #[tokio::test]
    async fn a_hanging_program_is_ended_with_its_children() {
        let (start, stop) = (Instant::now(), CancellationToken::new());
        let ended = run("#!/bin/sh\nsleep 100 &\nwait\n", Some(Duration::from_millis(200)), &stop).await;
        assert!(matches!(ended, Err(ProcessError::Timeout(_))));
        assert!(start.elapsed() < Duration::from_secs(5));
    }

    #[tokio::test]
    async fn a_running_program_is_ended_when_the_operator_stops() {
        let stop = CancellationToken::new();
        let (ended, ()) = tokio::join!(run("#!/bin/sh\nsleep 100\n", None, &stop), async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            stop.cancel();
        });
        assert!(matches!(ended, Err(ProcessError::Stopped)));
    }

    #[tokio::test]
    async fn a_configuration_may_take_longer_than_expected_but_not_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let ask = async |text: &str, longest| {
            let path = script(dir.path(), text);
            ask_for_config(&path, dir.path(), ConfigTime { expected: Duration::ZERO, longest }).await
        };
        let slow = ask("#!/bin/sh\nsleep 0.5\necho configVersion: v1\n", Duration::from_mins(1)).await;
        assert_eq!(slow.as_deref(), Ok("configVersion: v1\n"));
        let hangs = ask("#!/bin/sh\nsleep 100\n", Duration::from_millis(200)).await;
        assert_eq!(hangs.unwrap_err(), "it did not answer --config within 200ms");
    }

    #[tokio::test]
    async fn children_left_behind_do_not_hold_up_the_run() {
        let start = Instant::now();
        run("#!/bin/sh\nsleep 20 &\nexit 0\n", None, &CancellationToken::new()).await.unwrap();
        assert!(start.elapsed() < Duration::from_secs(10));
    }

    /// The pid that the program writes into a file, once it is there.
    async fn pid_in(file: &Path) -> i32 {
        loop {
            let text = std::fs::read_to_string(file).unwrap_or_default();
            if let Some(pid) = text.strip_suffix('\n') {
                return pid.parse().unwrap();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    #[tokio::test]
    async fn a_run_that_is_given_up_leaves_no_process() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let text = format!("#!/bin/sh\nsleep 100 &\necho $! > {}\nwait\n", file.display());
        let task = tokio::spawn(async move { run(&text, None, &CancellationToken::new()).await });
        let child = pid_in(&file).await;
        task.abort();
        let _ = task.await;
        let running = || {
            let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
            !stat.is_empty() && !stat.contains(") Z ")
        };
        while running() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    #[rstest]
    #[case::blank_line("\n#!/bin/sh\n", "blank lines")]
    #[case::no_shebang("echo\n", "neither a script")]
    #[case::empty("", "the file is empty")]
    #[case::crlf("#!/bin/sh\r\necho\r\n", "CR LF")]
    #[case::no_interpreter("#!/no/such/sh\n", "interpreter in its first line")]
    #[tokio::test]
    async fn what_cannot_be_started_is_explained(#[case] text: &str, #[case] expected: &str) {
        let error = run(text, None, &CancellationToken::new()).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
