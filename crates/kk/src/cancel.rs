//! Ctrl-C and SIGTERM: the first asks for a tidy end, the second ends at once.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// What a run looks at to know whether it should end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancel {
    /// Nothing new begins; what runs may end.
    pub tidy: CancellationToken,
    /// What runs is ended, too.
    pub at_once: CancellationToken,
}

impl Cancel {
    /// Listens to the signals from now on.
    ///
    /// # Errors
    /// The system refuses to deliver signals.
    pub(crate) fn on_signals() -> std::io::Result<Self> {
        let cancel = Self::default();
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let tokens = cancel.clone();
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                tokens.step();
            }
        });
        Ok(cancel)
    }

    /// One signal has come.
    fn step(&self) {
        if self.tidy.is_cancelled() {
            self.at_once.cancel();
        }
        self.tidy.cancel();
    }
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
}
