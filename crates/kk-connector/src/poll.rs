//! Waiting for sockets and pipes.

use std::{io, time::Duration};

use rustix::event::{PollFd, Timespec, poll};

/// Sleeps until a descriptor is ready; false if the time is over. A signal counts as ready.
pub(crate) fn poll_all(fds: &mut [PollFd<'_>], timeout: Duration) -> io::Result<bool> {
    let timeout = Timespec {
        tv_sec: timeout.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    };
    match poll(fds, Some(&timeout)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(true),
        Err(error) => Err(error.into()),
    }
}
