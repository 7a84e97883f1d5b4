//! One command on a simulated host: what kk-connector's bootstrap, kk-engine's driver and the upload script would say.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::Read as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, Result, bail};
use russh::{ChannelId, server::Handle};
use tokio::sync::mpsc::UnboundedReceiver;

use super::{
    answer::{Clock, answer},
    host::{Host, Payloads},
    programs::{self, ADMIN},
    shell::words,
};

/// Hosts have been up for an hour when the first one is asked.
const UP_MS: u128 = 3_600_000;

/// Held by the one that answers a probe.
static ANSWERS: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Serves a command until its script has ended.
pub(super) async fn run(
    host: Arc<Mutex<Host>>,
    input: UnboundedReceiver<Vec<u8>>,
    handle: Handle,
    channel: ChannelId,
) {
    let mut command = Command { host, input, unread: Vec::new(), handle, channel };
    let code = match command.serve().await {
        Ok(()) => 0,
        Err(error) => {
            // As a real host's shell would: the reason on standard error.
            let _ = command.handle.extended_data(channel, 1, format!("{error:#}\n").into_bytes()).await;
            1
        }
    };
    let _ = command.handle.exit_status_request(channel, code).await;
    let _ = command.handle.eof(channel).await;
    let _ = command.handle.close(channel).await;
}

struct Command {
    host: Arc<Mutex<Host>>,
    input: UnboundedReceiver<Vec<u8>>,
    unread: Vec<u8>,
    handle: Handle,
    channel: ChannelId,
}

impl Command {
    async fn serve(&mut self) -> Result<()> {
        let mark = self.line().await?;
        let nonce = mark.strip_prefix("kk-").context("the input does not begin with a mark")?.to_owned();
        let (mut size, mut stream) = (None, false);
        loop {
            let line = self.line().await?;
            if line == mark {
                break;
            }
            if line.starts_with("kk=") && size.is_none() {
                stream = line.contains(" mode=stream ");
                size = line.split(' ').find_map(|word| word.strip_prefix("size=")?.parse().ok());
            }
        }
        let tar = self.take(size.context("the bootstrap names no size")?).await?;
        let mut payloads = unpack(&tar)?;
        let script = payloads.remove("script").context("there is no script")?;
        let script = String::from_utf8_lossy(&script).into_owned();
        let begin = format!("kk-{nonce}-begin\n");
        self.say(&begin).await?;
        self.handle.extended_data(self.channel, 1, begin.into_bytes()).await.ok().context("gone")?;
        let code =
            if stream { self.upload(&payloads).await? } else { self.script(&script, &payloads).await? };
        let end = format!("kk-{nonce}-end {code}\n");
        self.say(&end).await?;
        self.handle.extended_data(self.channel, 1, end.into_bytes()).await.ok().context("gone")
    }

    async fn script(&mut self, script: &str, payloads: &Payloads) -> Result<u8> {
        if script.lines().take(5).any(|line| line.starts_with("KK_N=")) {
            self.rest(programs::PROBE).await?;
            // It may start a shell: one host after the other, so that only one thread is kept from the others.
            let turn = ANSWERS.lock().await;
            let text = tokio::task::block_in_place(|| answer(&self.host(), script, clock()));
            drop(turn);
            self.say(&text).await?;
        } else if script.contains("kk_operation()") {
            self.batch(script, payloads).await?;
        } else if let Some(path) = script.lines().next().and_then(|line| line.strip_prefix("f=")) {
            if words(path) != ["/etc/kubernetes/admin.conf"] {
                bail!("no such file: {path}");
            }
            self.say(&String::from_utf8_lossy(ADMIN)).await?;
        } else {
            let done = self.host().operate(script, payloads, clock().up_ms);
            self.rest(done.takes).await?;
            self.say(&done.stdout).await?;
        }
        Ok(0)
    }

    /// The operations of a batch, one after the other.
    async fn batch(&mut self, script: &str, payloads: &Payloads) -> Result<()> {
        let nonce = script.split_once("printf '\\n@").and_then(|(_, rest)| rest.split(' ').next());
        let nonce = nonce.context("the driver has no mark")?.to_owned();
        self.say(&format!("\n@{nonce} dir /run/kk.{nonce}\n")).await?;
        for line in script.lines() {
            let ["kk_operation", number, output, ..] = line.split(' ').collect::<Vec<_>>()[..] else {
                continue;
            };
            let text = payloads.get(&format!("{number}.sh")).context("an operation has no script")?;
            let prefix = format!("{number}.");
            let files: Payloads = payloads
                .iter()
                .filter_map(|(name, content)| Some((name.strip_prefix(&prefix)?.to_owned(), content.clone())))
                .collect();
            self.say(&format!("\n@{nonce} start {number}\n")).await?;
            let done = self.host().operate(&String::from_utf8_lossy(text), &files, clock().up_ms);
            self.rest(done.takes).await?;
            if output == "out" {
                self.say(&format!("\n@{nonce} out {number}\n{}", done.stdout)).await?;
            }
            self.say(&format!("\n@{nonce} end {number} 0\n")).await?;
        }
        Ok(())
    }

    /// Asks for all files that the host lacks, and compares their sums.
    async fn upload(&mut self, payloads: &Payloads) -> Result<u8> {
        if let Some(before) = payloads.get("before") {
            self.host().operate(&String::from_utf8_lossy(before), payloads, clock().up_ms);
        }
        let manifest =
            String::from_utf8_lossy(payloads.get("manifest").context("there is no manifest")?).into_owned();
        let lines: Vec<&str> = manifest.lines().collect();
        let (mut missing, mut wants) = (Vec::new(), String::new());
        for (number, pair) in lines.chunks_exact(2).enumerate() {
            let [size, sum, mode] = pair[0].split(' ').collect::<Vec<_>>()[..] else { bail!("{}", pair[0]) };
            if self.host().files.get(pair[1]).is_none_or(|file| file.sha256 != sum) {
                writeln!(wants, "want {number}")?;
                missing.push((number, size, sum, mode, pair[1]));
            }
        }
        self.say(&wants).await?;
        for (number, size, sum, mode, path) in missing {
            let content = self.take(size.parse()?).await?;
            let got = kk_util::sha256(&content);
            if got != sum {
                self.say(&format!("fail {number}\n")).await?;
                return Ok(1);
            }
            self.host().file(path, mode, "root:root", got, clock().up_ms);
        }
        Ok(0)
    }

    /// Time passes, unless the caller closes the input: that ends a script.
    async fn rest(&mut self, time: Duration) -> Result<()> {
        tokio::select! {
            () = tokio::time::sleep(time) => Ok(()),
            more = self.input.recv() => match more {
                Some(_) => bail!("input that was not asked for"),
                None => bail!("the script was ended"),
            },
        }
    }

    fn host(&self) -> MutexGuard<'_, Host> {
        self.host.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn say(&self, text: &str) -> Result<()> {
        self.handle.data(self.channel, text.as_bytes().to_vec()).await.ok().context("the connection is gone")
    }

    async fn line(&mut self) -> Result<String> {
        loop {
            if let Some(end) = self.unread.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            self.fill().await?;
        }
    }

    async fn take(&mut self, size: usize) -> Result<Vec<u8>> {
        while self.unread.len() < size {
            self.fill().await?;
        }
        Ok(self.unread.drain(..size).collect())
    }

    async fn fill(&mut self) -> Result<()> {
        let more = self.input.recv().await.context("the input ended too early")?;
        self.unread.extend_from_slice(&more);
        Ok(())
    }
}

/// The script, and its files without their directory.
fn unpack(tar: &[u8]) -> Result<Payloads> {
    let mut files = BTreeMap::new();
    for entry in tar::Archive::new(tar).entries()? {
        let mut entry = entry?;
        let path = entry.path()?.to_string_lossy().into_owned();
        let mut content = Vec::new();
        entry.read_to_end(&mut content)?;
        files.insert(path.strip_prefix("files/").unwrap_or(&path).to_owned(), content);
    }
    Ok(files)
}

/// All hosts have the same clock; it began to run with this program.
fn clock() -> Clock {
    static BEGAN: std::sync::OnceLock<u128> = std::sync::OnceLock::new();
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let began = *BEGAN.get_or_init(|| now_ms);
    Clock { now_ms, up_ms: UP_MS + now_ms - began }
}
