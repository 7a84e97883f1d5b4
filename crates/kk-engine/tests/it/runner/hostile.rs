//! A host that lies. Its task ends with an error about that host, within bounds of time and memory, and other hosts continue.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use kk_connector::{Command, Connection, Error, Output, Stats, Upload, UploadOutcome};
use kk_engine::{HostWork, Options, Outcome, Redactor, Task, actions};

use crate::runner::support::{ShellHost, log, run_on};

/// Answers each script with `begin`, and then repeats `again` without end, if it is set. `@` stands for the mark that the
/// script's driver uses.
struct Liar {
    begin: String,
    again: Option<&'static str>,
    code: i32,
}

impl Liar {
    async fn say(&self, command: &Command, text: &str) {
        let mark = command.script.split_once("printf '\\n@").map_or("", |(_, rest)| rest);
        let mark = format!("@{} ", mark.split(' ').next().unwrap_or_default());
        for line in text.replace("@ ", &mark).lines() {
            if let Some(lines) = &command.lines {
                let _ = lines.send(line.to_owned()).await;
            }
        }
    }
}

#[async_trait]
impl Connection for Liar {
    fn host(&self) -> &'static str {
        "a"
    }

    async fn run(&self, command: Command) -> Result<Output, Error> {
        let saying = async {
            self.say(&command, &self.begin).await;
            while let Some(text) = self.again {
                self.say(&command, text).await;
                tokio::task::yield_now().await;
            }
        };
        let host = || "a".to_owned();
        tokio::select! {
            () = saying => Ok(Output { code: self.code, stderr: "x".repeat(4 << 20), ..Output::default() }),
            () = command.cancel.cancelled() => Err(Error::Cancelled { host: host() }),
            () = tokio::time::sleep(command.timeout) => Err(Error::Timeout { host: host(), after: command.timeout }),
        }
    }

    async fn upload(&self, _upload: Upload) -> Result<UploadOutcome, Error> {
        Ok(UploadOutcome { bytes: u64::MAX })
    }

    async fn read_part(&self, _path: &str, _offset: u64, most: u64) -> Result<Vec<u8>, Error> {
        Ok(vec![0; usize::try_from(most).unwrap_or(0)])
    }

    fn stats(&self) -> Stats {
        Stats::default()
    }

    async fn close(&self) {}
}

#[tokio::test]
async fn a_host_that_lies_is_an_error_about_that_host_and_others_go_on() {
    let too_much = format!("@ start 0\n@ out 0\n{}@ end 0 0", ("x".repeat(1 << 20) + "\n").repeat(5));
    for (case, begin, again, code, why) in [
        ("errors without end", "@ start 0", Some("noise"), 0, "no end after"),
        ("empty lines as output", "@ start 0\n@ out 0", Some("\n\n\n\n\n\n\n\n"), 0, "no end after"),
        ("endless notes", "@ start 0", Some("note: x\nkk-command: x"), 0, "no end after"),
        ("output without end", "@ start 0\n@ out 0", None, 0, "the script ended too early"),
        ("too much output", &too_much, None, 0, "it printed more than 4 MiB"),
        (
            "wrong numbers",
            "@ start 18446744073709551616\n@ end 0\n@ end x 0\n@ end 7 0",
            None,
            0,
            "too early",
        ),
        ("starts without end", "@ start 0", Some("@ start 0\n@ dir /\n@ refused"), 0, "no end after"),
        ("nothing", "", None, 0, "too early"),
        (
            "escapes",
            "@ start 0\n\u{1b}[2J\u{1b}]0;x\u{7}\u{202e}\n@ end 0 3",
            None,
            0,
            "\\u{1b}[2J\\u{1b}]0;x\\u{7}\\u{202e}",
        ),
        (
            "a command of escapes",
            "@ start 0\nkk-command: \u{9b}2J\n@ end 0 3",
            None,
            0,
            "it ended with code 3",
        ),
        ("long errors", "", None, 3, "the script ended too early"),
    ] {
        println!("case {case}");
        let liar = Arc::new(Liar { begin: begin.to_owned(), again, code });
        let honest = ShellHost::new("b");
        let command = actions::Command::new("print", "true").output(Arc::new(|_, _| Ok(())));
        let first = Task::new("first", "").timeout(Duration::from_millis(500));
        let tasks = vec![
            first.on("a", HostWork::new(vec![Box::new(command)])),
            Task::new("honest", "").on("b", log("first")),
            Task::new("second", "").on("a", log("never")).on("b", log("second")),
        ];
        let hosts: [(&str, Arc<dyn Connection>); 2] = [("a", liar.clone()), ("b", honest.clone())];
        let began = Instant::now();
        let options = Options { ignore_err: true, ..Options::default() };
        let ran = run_on(tasks, hosts, options, Redactor::default()).await;
        assert!(began.elapsed() < Duration::from_mins(1), "{case}: {:?}", began.elapsed());
        assert_eq!(honest.log(), ["first", "second"], "{case}");
        assert_eq!(ran.ended(|outcome| matches!(outcome, Outcome::Failed { .. })), ["first@a"], "{case}");
        let [failed] = &ran.report.failures[..] else { panic!("{case}: {:?}", ran.report.failures) };
        assert_eq!(failed.host, "a", "{case}");
        assert!(failed.failure.cause.contains(why), "{case}: {}", failed.failure.cause);
        let shown = format!("{:?}", ran.events) + &format!("{:?}", failed.failure);
        assert!(shown.len() < 1 << 20, "{case}: {}", shown.len());
        for event in &ran.events {
            let line = serde_json::to_string(event).unwrap();
            let controls = line.contains(|c: char| c.is_control() || c == '\u{202e}');
            assert!(!controls && !line.contains("\\u001b"), "{case}: {line}");
        }
    }
}
