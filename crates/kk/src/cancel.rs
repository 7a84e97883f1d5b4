//! Ctrl-C, SIGTERM and SIGHUP: the first signal requests a graceful stop, a second Ctrl-C or SIGTERM ends the run at once.
//!
//! SIGHUP means that the terminal or the SSH session is gone. Shell and kernel both send it, so a second SIGHUP is not a request
//! of the user.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The cancellation state that a run checks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancel {
    /// Nothing new begins; running work may finish.
    pub tidy: CancellationToken,
    /// Running work is ended, too.
    pub at_once: CancellationToken,
}

impl Cancel {
    /// Starts to listen to the signals.
    ///
    /// # Errors
    /// The system refuses to deliver signals.
    pub(crate) fn on_signals() -> std::io::Result<Self> {
        let cancel = Self::default();
        cancel.at(SignalKind::interrupt(), Self::step)?;
        cancel.at(SignalKind::terminate(), Self::step)?;
        // `nohup kk …` must survive its terminal.
        if !is_ignored(SignalKind::hangup()) {
            cancel.at(SignalKind::hangup(), Self::hang_up)?;
        }
        Ok(cancel)
    }

    fn at(&self, kind: SignalKind, react: fn(&Self)) -> std::io::Result<()> {
        let (mut signals, cancel) = (signal(kind)?, self.clone());
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                react(&cancel);
            }
        });
        Ok(())
    }

    /// The terminal is gone.
    fn hang_up(&self) {
        self.tidy.cancel();
    }

    /// The user requests the end of the run.
    fn step(&self) {
        if self.tidy.is_cancelled() {
            self.at_once.cancel();
        }
        self.tidy.cancel();
    }
}

/// Whether this process was started with the signal ignored (proc(5), `SigIgn`). Listening would undo that.
fn is_ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (kind.as_raw_value() - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::Cancel;

    #[test]
    fn the_second_signal_ends_at_once() {
        let cancel = Cancel::default();
        let state = || (cancel.tidy.is_cancelled(), cancel.at_once.is_cancelled());
        assert_eq!(state(), (false, false));
        cancel.step();
        assert_eq!(state(), (true, false));
        cancel.step();
        assert_eq!(state(), (true, true));
    }

    #[test]
    fn a_terminal_that_closes_is_one_signal_however_often_it_is_told() {
        let cancel = Cancel::default();
        cancel.hang_up();
        cancel.hang_up();
        assert_eq!((cancel.tidy.is_cancelled(), cancel.at_once.is_cancelled()), (true, false));
    }
}
