//! A host for tests that runs its scripts: `sh` in a temporary directory, which is the host's root.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use kk_connector::{Command, Connection, Error, Output, Payload, Stats, Upload, UploadFile, UploadOutcome};
use kk_engine::{
    Event, EventKind, Failure, HostWork, Module, Options, Outcome, Pipeline, Plan, Redactor, Report, Slot,
    Task, actions,
};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

/// The script that receives files on a host.
const UPLOAD: &str = include_str!("../../../../kk-connector/src/exchange/upload.sh");

pub(crate) struct ShellHost {
    name: String,
    pub(crate) root: tempfile::TempDir,
    trips: AtomicU64,
    /// How many of the next calls are lost.
    lose: Mutex<u32>,
    /// Whether the scripts' root is the directory instead of this machine's root.
    keeps_root: bool,
}

impl ShellHost {
    pub(crate) fn new(name: &str) -> Arc<Self> {
        Arc::new(Self::with_root(name, true))
    }

    /// A host whose environment sets `KK_ROOT`. Its scripts must ignore it and change nothing there.
    pub(crate) fn with_foreign_root(name: &str) -> Arc<Self> {
        Arc::new(Self::with_root(name, false))
    }

    fn with_root(name: &str, keeps_root: bool) -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("etc")).unwrap();
        let (trips, lose) = (AtomicU64::new(0), Mutex::default());
        Self { name: name.to_owned(), root, trips, lose, keeps_root }
    }

    pub(crate) fn lose(&self, calls: u32) {
        *self.lose.lock().unwrap() = calls;
    }

    pub(crate) fn trips(&self) -> u64 {
        self.trips.load(Ordering::SeqCst)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// The text that the scripts wrote into `$KK_ROOT/log`, as words.
    pub(crate) fn log(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("log")).unwrap_or_default();
        text.split_whitespace().map(str::to_owned).collect()
    }

    /// Scripts ignore the host's own `KK_ROOT`: for a test the directory is the root nevertheless.
    fn with_its_root(&self, script: &str) -> String {
        if self.keeps_root { script.replacen("unset KK_ROOT ", "unset ", 1) } else { script.to_owned() }
    }

    /// Runs a script. It receives each source that it requests.
    async fn execute(
        &self,
        command: &Command,
        directory: &Path,
        sources: &[PathBuf],
    ) -> Result<Output, Error> {
        for file in &command.files {
            fs::write(directory.join(&file.name), &file.content).unwrap();
        }
        fs::write(directory.join("driver"), self.with_its_root(&command.script)).unwrap();
        let mut child = tokio::process::Command::new("sh")
            .arg("driver")
            .current_dir(directory)
            .env("KK_ROOT", self.root.path())
            .stdin(if sources.is_empty() { Stdio::null() } else { Stdio::piped() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let group = child.id().unwrap();
        // For an upload, the end of its input means that its caller is gone.
        let mut input = child.stdin.take();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut errors = child.stderr.take().unwrap();
        let mut output = Output::default();
        let reading = async {
            while let Some(line) = lines.next_line().await.unwrap() {
                output.stdout.extend([&line, "\n"]);
                if let (Some(input), Some(source)) = (&mut input, wanted(&line, sources)) {
                    input.write_all(&fs::read(source).unwrap()).await.unwrap();
                }
                if let Some(sender) = &command.lines {
                    let _ = sender.send(line).await;
                }
            }
            errors.read_to_string(&mut output.stderr).await.unwrap();
            output.code = child.wait().await.unwrap().code().unwrap_or(137);
        };
        let error = tokio::select! {
            () = reading => return Ok(output),
            () = command.cancel.cancelled() => Error::Cancelled { host: self.name.clone() },
            () = tokio::time::sleep(command.timeout) => Error::Timeout { host: self.name.clone(), after: command.timeout },
        };
        std::process::Command::new("kill").args(["-KILL", "--", &format!("-{group}")]).status().unwrap();
        Err(error)
    }
}

#[async_trait]
impl Connection for ShellHost {
    fn host(&self) -> &str {
        &self.name
    }

    async fn run(&self, command: Command) -> Result<Output, Error> {
        self.trips.fetch_add(1, Ordering::SeqCst);
        {
            let mut lose = self.lose.lock().unwrap();
            if *lose > 0 {
                *lose -= 1;
                return Err(Error::Lost { host: self.name.clone(), reason: "by the test".into() });
            }
        }
        let directory = tempfile::tempdir().unwrap();
        self.execute(&command, directory.path(), &[]).await
    }

    async fn upload(&self, upload: Upload) -> Result<UploadOutcome, Error> {
        self.trips.fetch_add(1, Ordering::SeqCst);
        let hooks = upload.hooks.clone();
        let texts = [("lock", hooks.lock), ("before", hooks.before), ("after", hooks.after)];
        let mut files = hooks.files;
        files.extend(texts.into_iter().filter_map(|(name, text)| {
            Some(Payload { name: name.into(), content: self.with_its_root(&text?).as_bytes().into() })
        }));
        let (mut manifest, mut sources) = (String::new(), Vec::new());
        for UploadFile { source, target, mode, sha256 } in upload.files {
            let (size, target) =
                (fs::metadata(&source).unwrap().len(), self.path(target.trim_start_matches('/')));
            writeln!(manifest, "{size} {sha256} {mode:o}\n{}", target.display()).unwrap();
            sources.push(source);
        }
        files.push(Payload { name: "manifest".into(), content: manifest.as_bytes().into() });
        let (timeout, cancel) = (upload.timeout, upload.cancel);
        let directory = tempfile::tempdir().unwrap();
        let script = format!("kk=abcdefghijklmnop\n{UPLOAD}");
        let command = Command { files, timeout, cancel, ..Command::new(script) };
        let output = self.execute(&command, directory.path(), &sources).await?;
        if output.code != 0 {
            let (host, path) = (self.name.clone(), "files".to_owned());
            return Err(Error::Transfer { host, path, reason: output.stderr.trim().to_owned() });
        }
        let sent = output.stdout.lines().filter_map(|line| wanted(line, &sources));
        let bytes = sent.map(|source| fs::metadata(source).unwrap().len()).sum();
        if let Some(progress) = &upload.progress {
            progress.send(bytes).unwrap();
        }
        Ok(UploadOutcome { bytes })
    }

    async fn read_part(&self, path: &str, _offset: u64, _most: u64) -> Result<Vec<u8>, Error> {
        Ok(fs::read(self.path(path.trim_start_matches('/'))).unwrap())
    }

    fn stats(&self) -> Stats {
        Stats { round_trips: self.trips(), ..Stats::default() }
    }

    async fn close(&self) {}
}

/// The file that a line of an upload requests.
fn wanted<'a>(line: &str, sources: &'a [PathBuf]) -> Option<&'a PathBuf> {
    sources.get(line.strip_prefix("want ")?.parse::<usize>().ok()?)
}

/// The report and the events of a run.
pub(crate) struct Ran {
    pub(crate) report: Report,
    pub(crate) events: Vec<Event>,
}

impl Ran {
    /// `task@host` of all tasks with such an outcome.
    pub(crate) fn ended(&self, wanted: impl Fn(&Outcome) -> bool) -> Vec<String> {
        let ended = self.events.iter().filter_map(|event| match &event.kind {
            EventKind::TaskFinished { host, task, outcome, .. } if wanted(outcome) => {
                Some(format!("{task}@{host}"))
            }
            _ => None,
        });
        ended.collect()
    }

    pub(crate) fn skipped(&self) -> Vec<String> {
        let mut skipped = self.ended(|outcome| matches!(outcome, Outcome::Skipped { .. }));
        skipped.sort();
        skipped
    }

    /// The only failure.
    pub(crate) fn failure(&self) -> &Failure {
        assert_eq!(self.report.failures.len(), 1, "{:?}", self.report.failures);
        &self.report.failures[0].failure
    }
}

/// Runs tasks on hosts, with a limit of one minute for a run.
pub(crate) async fn run(tasks: Vec<Task>, hosts: &[&Arc<ShellHost>], options: Options) -> Ran {
    run_with(tasks, hosts, options, Redactor::default()).await
}

pub(crate) async fn run_with(
    tasks: Vec<Task>,
    hosts: &[&Arc<ShellHost>],
    options: Options,
    redactor: Redactor,
) -> Ran {
    let connections = hosts.iter().map(|host| (&*host.name, (*host).clone() as Arc<dyn Connection>));
    run_on(tasks, connections, options, redactor).await
}

/// The same on any kind of host.
pub(crate) async fn run_on(
    tasks: Vec<Task>,
    hosts: impl IntoIterator<Item = (&str, Arc<dyn Connection>)>,
    options: Options,
    redactor: Redactor,
) -> Ran {
    let pipeline = Pipeline::new(vec![Module::new("m", tasks)]);
    let plan = Plan::new(pipeline, &BTreeMap::new()).unwrap();
    let connections = hosts.into_iter().map(|(name, host)| (name.to_owned(), host)).collect();
    let (sender, mut receiver) = kk_engine::events(redactor);
    let run = kk_engine::run(plan, connections, options, sender);
    let report = tokio::time::timeout(Duration::from_mins(1), run).await.expect("the run hangs");
    let mut events = Vec::new();
    while let Some(event) = receiver.recv().await {
        events.push(event);
    }
    Ran { report, events }
}

/// Waits until a script has created this file.
pub(crate) async fn is_there(path: PathBuf) {
    while !path.exists() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Work that consists of one script.
pub(crate) fn script(text: &str) -> HostWork {
    HostWork::new(vec![command(text)])
}

pub(crate) fn command(text: &str) -> Box<dyn kk_engine::Action> {
    Box::new(actions::Command::new("change something", text))
}

/// Work that writes a word into the host's log.
pub(crate) fn log(word: &str) -> HostWork {
    script(&format!("echo {word} >>$KK_ROOT/log"))
}

/// A slot that only signals that a condition holds.
pub(crate) fn slot(name: &str) -> kk_engine::SlotKey {
    Slot::<()>::new(name).key()
}
