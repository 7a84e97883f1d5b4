//! Running a hook's program: its own process group, its output into the log, an end when time is up.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use super::children::{self, Entry};
use super::output::{copy_lines, finish};
use super::start_error::explain;
use super::{LineLog, usage};
use crate::metrics::RunUsage;

/// Time between SIGTERM and SIGKILL.
pub(crate) const GRACE: Duration = Duration::from_secs(10);
/// How long output is read after the program has ended: children it left behind may hold the pipe open.
pub(super) const AFTER_END: Duration = Duration::from_secs(1);

/// Variable in which hooks written for the first releases find the directory with all hooks.
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
    /// Variables that are added to the operator's own environment.
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
    /// The resources that it used.
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
        entry.signal(Signal::TERM);
        // If it does not end in time, SIGKILL follows; then its usage is unknown.
        let _ = tokio::time::timeout(GRACE, usage::until_end(entry.pid(), &mut usage)).await;
        // Processes that it left behind must not run concurrently with the next attempt, either. The process id stays reserved
        // until the process is waited for.
        entry.signal(Signal::KILL);
        let _ = child.wait().await;
        (Err(reason), usage)
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::hook::Labels;
    use crate::hook::output::KEPT_STDERR;
    use crate::hook::testing::program;
    use crate::log::{Format, Level, Logger};

    async fn run(
        text: &str,
        timeout: Option<Duration>,
        stop: &CancellationToken,
    ) -> Result<Ended, ProcessError> {
        let dir = tempfile::tempdir().unwrap();
        let path = program(dir.path(), "hook", text);
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

    #[tokio::test]
    async fn what_cannot_be_started_is_explained() {
        for (case, text, expected) in [
            ("blank_line", "\n#!/bin/sh\n", "blank lines"),
            ("no_shebang", "echo\n", "neither a script"),
            ("empty", "", "the file is empty"),
            ("crlf", "#!/bin/sh\r\necho\r\n", "CR LF"),
            ("no_interpreter", "#!/no/such/sh\n", "interpreter in its first line"),
        ] {
            println!("case {case}");
            let error = run(text, None, &CancellationToken::new()).await.unwrap_err().to_string();
            assert!(error.contains(expected), "{case}: {error}");
        }
    }
}
