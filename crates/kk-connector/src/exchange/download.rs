//! Implements `Connection::read_part` for every [`Caller`].

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{Call, Caller, last_lines};
use crate::{Error, quote};

/// A part is small: a host that needs longer for it is stuck.
const TIMEOUT: Duration = Duration::from_mins(5);

/// Reads at most `most` bytes of a file as root, from `offset` on. Bytes are counted, because files under /proc report size 0.
/// `tail` must exit with 0, or by SIGPIPE (141) because the rest is not wanted. With any other code, the end of its output is not
/// the end of the file.
pub(crate) async fn read_part(
    caller: &dyn Caller,
    path: &str,
    offset: u64,
    most: u64,
) -> Result<Vec<u8>, Error> {
    let script = format!(
        "f={path}\n\
         if [ ! -e \"$f\" ]; then echo 'no such file' >&2; exit 1; fi\n\
         if [ ! -f \"$f\" ]; then echo 'not a regular file' >&2; exit 1; fi\n\
         (tail -c +{first} <\"$f\"; echo $? >ended) | head -c {most}\n\
         case $(cat ended) in 0 | 141) ;; *) exit 1 ;; esac\n",
        path = quote(path),
        first = offset.saturating_add(1),
    );
    let mut call = Call::new(script.into(), TIMEOUT, CancellationToken::new());
    call.keep = usize::try_from(most).unwrap_or(usize::MAX);
    call.whole = true;
    let reply = caller.call(call).await?;
    if reply.code != 0 {
        let host = caller.peer().host.clone();
        return Err(Error::Read { host, path: path.to_owned(), reason: last_lines(&reply.stderr) });
    }
    Ok(reply.stdout)
}
