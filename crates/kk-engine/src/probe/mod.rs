//! The probe: one script, one round trip, and everything that checks need to know about a host.
//!
//! [`probe_script`] writes the script, [`parse`] reads its output; both are pure. The host keeps one thing from
//! it, the sums of large files in `/etc/kubekey/sums`, and only where that directory exists already.

mod parse;
mod script;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kk_connector::{Command, Connection, nonce};
use tokio_util::sync::CancellationToken;

pub use parse::parse;
pub use script::probe_script;

use crate::{Facts, Failure, ProbeSpec};

/// Time for a probe beside its questions: a slow disk may have to read large programs once. One that takes longer has
/// met a hung host.
const TIMEOUT: Duration = Duration::from_mins(2);

/// Looks at a host: one round trip.
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
    let questions = spec.questions.values().map(|asked| asked.seconds).max().unwrap_or(0);
    command.timeout = TIMEOUT + Duration::from_secs(questions);
    command.cancel = cancel.clone();
    let sent = now_ms();
    let output = connection.run(command).await?;
    let received = now_ms();
    let said: Vec<String> = output.stderr.lines().map(str::to_owned).collect();
    let failed = |cause: String| Failure {
        code: Some(output.code),
        stderr: said[said.len().saturating_sub(20)..].to_vec(),
        ..Failure::new(cause)
    };
    if output.code != 0 {
        return Err(failed(format!("cannot look at {}", connection.host())));
    }
    parse(spec, &nonce, &output.stdout, (sent, received))
        .map_err(|problem| failed(format!("cannot understand what {} said: {problem}", connection.host())))
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
