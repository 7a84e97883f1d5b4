//! Runs `kk` inside the lab's network, and checks the result.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use kk_test_common::events::Events;

use crate::context::Context;
use crate::process::{Finished, Job, Running};
use crate::report;
use crate::site::Site;

const RUN_LIMIT: Duration = Duration::from_mins(5);

/// A run of `kk` that has ended.
#[derive(Clone, Debug)]
pub(crate) struct KkRun {
    pub(crate) finished: Finished,
    pub(crate) events: Events,
}

impl KkRun {
    /// Waits for the end of a run that was started with events.
    pub(crate) fn of(running: Running) -> Result<Self> {
        let finished = running.wait()?;
        let events = Events::parse(&finished.stdout);
        Ok(Self { finished, events })
    }

    /// Its messages to the user: stderr, and the errors that it found about the hosts.
    pub(crate) fn said(&self) -> String {
        format!("{}{}", self.finished.stderr, self.events.errors_found().join("\n"))
    }

    /// Errors: it ended with another code.
    pub(crate) fn expect_code(&self, code: i32) -> Result<&Self> {
        ensure!(
            self.finished.code == Some(code),
            "kk ended with {:?}, not with code {code}; it said:\n{}",
            self.finished.code,
            report::last_lines(&self.said())
        );
        Ok(self)
    }

    /// Errors: one of the texts is missing in its messages (case does not matter).
    pub(crate) fn expect_said(&self, words: &[&str]) -> Result<&Self> {
        let said = self.said();
        for word in words {
            ensure!(
                said.to_lowercase().contains(&word.to_lowercase()),
                "kk did not say `{word}`; it said:\n{}",
                report::last_lines(&said)
            );
        }
        Ok(self)
    }
}

impl Context<'_> {
    /// `kk WORDS -f FILE --workdir …` in the lab's network, with a home of its own.
    pub(crate) fn kk_job(&self, site: &Site, words: &[&str]) -> Job {
        self.enter(&["env"])
            .args([format!("HOME={}", site.home().display())])
            .args([&self.tools.kk])
            .args(words.iter().copied())
            .args(["-f".into(), site.file.clone(), "--workdir".into(), site.workdir()])
            .directory(&site.dir)
            .limit(RUN_LIMIT)
    }

    /// As [`Context::kk_ok`], on hosts that are slow.
    pub(crate) fn kk_slow(
        &self,
        site: &Site,
        command: &str,
        more: &[&str],
        limit: Duration,
    ) -> Result<KkRun> {
        let words = [&[command, "cluster", "-y", "--output", "json"], more].concat();
        let job = self.kk_job(site, &words).limit(limit);
        let run = KkRun::of(self.start(&format!("kk-{command}"), job)?)?;
        run.expect_code(0)?;
        Ok(run)
    }

    /// Starts `kk create cluster` or `kk delete cluster`, unattended, with events on stdout.
    pub(crate) fn kk_start(&self, site: &Site, command: &str, more: &[&str]) -> Result<Running> {
        let words = [&[command, "cluster", "-y", "--output", "json"], more].concat();
        self.start(&format!("kk-{command}"), self.kk_job(site, &words))
    }

    /// Runs a command for single nodes, such as `add nodes`, unattended and to its end, successful or not.
    pub(crate) fn kk_nodes(&self, site: &Site, words: &[&str]) -> Result<KkRun> {
        let words = [words, &["-y", "--output", "json"]].concat();
        KkRun::of(self.start(&format!("kk-{}-{}", words[0], words[1]), self.kk_job(site, &words))?)
    }

    /// Runs it to its end, whatever that is.
    pub(crate) fn kk(&self, site: &Site, command: &str, more: &[&str]) -> Result<KkRun> {
        KkRun::of(self.kk_start(site, command, more)?)
    }

    /// Runs it. Errors: it fails, or does not report success at its end.
    pub(crate) fn kk_ok(&self, site: &Site, command: &str, more: &[&str]) -> Result<KkRun> {
        let run = self.kk(site, command, more)?;
        run.expect_code(0)?;
        ensure!(
            run.events.finished()?.ok,
            "kk ended with code 0, but its last event says that not all is well"
        );
        Ok(run)
    }

    /// Waits until a task (`module/task`) of a running `kk` has begun on some host. Errors: it ends before.
    pub(crate) fn await_task(&self, kk: &mut Running, task: &str) -> Result<()> {
        let file = kk.stdout_file().to_owned();
        self.until(&format!("{task} begins"), RUN_LIMIT, || {
            let ended = kk.has_ended()?;
            let events = Events::parse(&fs::read_to_string(&file).context("kk's events cannot be read")?);
            if events.has_begun(task) {
                return Ok(Some(()));
            }
            if ended {
                bail!("kk ended before {task} began; its events: {}", file.display());
            }
            Ok(None)
        })
    }
}
