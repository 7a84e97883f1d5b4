//! Asking a hook for its configuration: `--config`.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::pin::pin;
use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};

use super::children;
use super::process::{AFTER_END, old_hooks_dir};
use super::start_error::explain;

/// Maximum output of a hook in bytes: a configuration with its jq files has some KiB.
const LARGEST: usize = 4 << 20;

/// How long a hook may take to print its configuration.
#[derive(Clone, Copy)]
pub(super) struct ConfigTime {
    /// After this time a warning reports what is waited for.
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
    let (mut child, entry) = children::spawn(&mut command).map_err(|error| explain(path, &error))?;
    let slow = async {
        tokio::time::sleep(time.expected).await;
        tracing::warn!(hook = path.display().to_string(), "--config takes longer than {:?}", time.expected);
        std::future::pending().await
    };
    let answer = async {
        tokio::select! {
            output = output_of(&mut child) => output,
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

/// The output of the program until it ends. Children that it leaves may hold its output open for longer.
async fn output_of(child: &mut Child) -> io::Result<Output> {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let status = {
        let mut read = pin!(async {
            tokio::try_join!(read_all(out, &mut stdout), read_all(err, &mut stderr)).map(drop)
        });
        tokio::select! {
            read = &mut read => {
                read?;
                child.wait().await?
            }
            status = child.wait() => {
                if let Ok(read) = tokio::time::timeout(AFTER_END, read).await {
                    read?;
                }
                status?
            }
        }
    };
    Ok(Output { status, stdout, stderr })
}

async fn read_all(pipe: Option<impl AsyncRead + Unpin>, into: &mut Vec<u8>) -> io::Result<()> {
    let Some(mut pipe) = pipe else { return Ok(()) };
    while pipe.read_buf(into).await? > 0 {
        if into.len() > LARGEST {
            let text = format!("it printed more than {} MiB for --config", LARGEST >> 20);
            return Err(io::Error::other(text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hook::testing::program;

    #[tokio::test]
    async fn a_configuration_may_take_longer_than_expected_but_not_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let ask = async |text: &str, longest| {
            let path = program(dir.path(), "hook", text);
            ask_for_config(&path, dir.path(), ConfigTime { expected: Duration::ZERO, longest }).await
        };
        let slow = ask("#!/bin/sh\nsleep 0.5\necho configVersion: v1\n", Duration::from_mins(1)).await;
        assert_eq!(slow.as_deref(), Ok("configVersion: v1\n"));
        let hangs = ask("#!/bin/sh\nsleep 100\n", Duration::from_millis(200)).await;
        assert_eq!(hangs.unwrap_err(), "it did not answer --config within 200ms");
        let leaves = ask("#!/bin/sh\nsleep 1000 &\necho configVersion: v1\n", Duration::from_mins(1)).await;
        assert_eq!(leaves.as_deref(), Ok("configVersion: v1\n"), "its child holds the output open");
        let endless = ask("#!/bin/sh\nexec yes\n", Duration::from_mins(1)).await.unwrap_err();
        assert!(endless.contains("printed more than"), "{endless}");
    }
}
