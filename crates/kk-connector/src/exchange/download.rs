//! `Connection::download` on anything that can carry out a call.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{Call, Caller, last_lines};
use crate::{Error, quote};

/// A file that is read whole is small; a host that takes longer for it is stuck.
const TIMEOUT: Duration = Duration::from_mins(5);

/// Reads a file as root. Files under /proc say size 0, so the bytes are counted too.
pub(crate) async fn download(caller: &dyn Caller, path: &str, limit: u64) -> Result<Vec<u8>, Error> {
    let script = format!(
        "f={path}\n\
         if [ ! -e \"$f\" ]; then echo 'no such file' >&2; exit 1; fi\n\
         if [ ! -f \"$f\" ]; then echo 'not a regular file' >&2; exit 1; fi\n\
         exec head -c {most} <\"$f\"\n",
        path = quote(path),
        most = limit.saturating_add(1),
    );
    let mut call = Call::new(script.into(), TIMEOUT, CancellationToken::new());
    call.keep = usize::try_from(limit.saturating_add(1)).unwrap_or(usize::MAX);
    let reply = caller.call(call).await?;
    let failed = |reason| Error::Read { host: caller.peer().host.clone(), path: path.to_owned(), reason };
    if reply.code != 0 {
        return Err(failed(last_lines(&reply.stderr)));
    }
    if reply.stdout.len() as u64 > limit {
        return Err(failed(format!("it is larger than {limit} bytes")));
    }
    Ok(reply.stdout)
}
