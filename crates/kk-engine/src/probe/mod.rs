//! The probe: gathers all facts that checks need about a host, with one script in one round trip.
//!
//! [`probe_script`] writes the script, [`parse`] reads its output; both are pure. The probe stores only one file on the host, the
//! checksums of large files in `/etc/kubekey/sums`, and only if that directory exists already.

#[cfg(test)]
mod fuzz;
mod parse;
mod script;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kk_connector::{Command, Connection, Error, Output, nonce};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use parse::parse;
pub use script::probe_script;

use crate::{Facts, Failure, ProbeSpec, Retry, runner::last_lines};

/// Time limit for a probe, in addition to its questions: a slow disk may have to read large binaries once. A probe that takes
/// longer means a hung host.
const TIMEOUT: Duration = Duration::from_mins(2);

/// A host that could not be reached for this long is down, and is not dialled again. For a host of the same network, "no route"
/// is reported after 3 s.
const AWAY: Duration = Duration::from_secs(2);

/// Maximum size of a host's answer: a control plane lists all nodes with their labels, about 3 KiB for each.
const LARGEST: usize = 32 << 20;

/// After this time plus the time of the slowest question, no new attempt begins: the host hangs.
const PATIENCE: Duration = Duration::from_mins(1);

/// Probes a host: one round trip. If the connection breaks, or a busy host answers only in part, the probe is repeated, like a
/// task.
///
/// # Errors
/// Errors of the connection; a host whose answer is incomplete.
pub async fn probe(
    connection: &dyn Connection,
    spec: &ProbeSpec,
    cancel: &CancellationToken,
) -> Result<Facts, Failure> {
    let nonce = nonce();
    let mut command = Command::new(probe_script(spec, &nonce));
    let questions =
        Duration::from_secs(spec.questions.values().map(|asked| asked.seconds).max().unwrap_or(0));
    command.timeout = TIMEOUT + questions;
    command.cancel = cancel.clone();
    command.keep = LARGEST;
    command.whole = true;
    let first = Instant::now();
    let mut attempt = 1;
    loop {
        let (began, sent) = (Instant::now(), now_ms());
        let (failure, again) = match connection.run(command.clone()).await {
            Ok(output) => match look(connection.host(), spec, &nonce, &output, (sent, now_ms())) {
                Ok(facts) => return Ok(facts),
                Err(failure) => (failure, output.code == 0),
            },
            Err(error) => {
                let is_away = matches!(error, Error::Unreachable { .. }) && began.elapsed() > AWAY;
                let again = error.is_connection() && !is_away;
                (error.into(), again)
            }
        };
        if !again || attempt == Retry::CONNECTION.attempts || first.elapsed() > PATIENCE + questions {
            return Err(failure);
        }
        tokio::select! {
            () = tokio::time::sleep(Retry::CONNECTION.pause(attempt)) => attempt += 1,
            () = cancel.cancelled() => return Err(failure),
        }
    }
}

/// Parses the host's answer.
fn look(
    host: &str,
    spec: &ProbeSpec,
    nonce: &str,
    output: &Output,
    times: (i64, i64),
) -> Result<Facts, Failure> {
    let failed = |cause: String| Failure {
        code: Some(output.code),
        stderr: last_lines(&output.stderr),
        ..Failure::new(cause)
    };
    if output.code != 0 {
        return Err(failed(format!("cannot probe {host}")));
    }
    parse(spec, nonce, &output.stdout, times)
        .map_err(|problem| failed(format!("cannot parse the answer of {host}: {problem}")))
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
