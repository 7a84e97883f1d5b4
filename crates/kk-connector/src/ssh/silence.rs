//! Measures how long a host has sent nothing. The host's pipe owns the value.

use std::time::Duration;

/// The time without a response is the time that was spent waiting for the host, not wall-clock time: while this process got no
/// processor, it did not listen.
#[derive(Debug)]
pub(super) struct Silence {
    /// How long the host may send nothing.
    patience: Duration,
    lasted: Duration,
    /// How long the silence had lasted at the last keep-alive, if one was sent.
    asked: Option<Duration>,
}

impl Silence {
    pub(super) fn new(patience: Duration) -> Self {
        Self { patience, lasted: Duration::ZERO, asked: None }
    }

    /// The host has sent or accepted bytes.
    pub(super) fn end(&mut self) {
        self.lasted = Duration::ZERO;
        self.asked = None;
    }

    /// The host was waited for and sent nothing.
    pub(super) fn go_on(&mut self, time: Duration) {
        self.lasted = self.lasted.saturating_add(time);
    }

    /// How long the silence has lasted, once that is too long.
    pub(super) fn too_long(&self) -> Option<Duration> {
        (self.lasted >= self.patience).then_some(self.lasted)
    }

    /// Whether a keep-alive is due: three times within `patience`.
    pub(super) fn is_to_ask(&self) -> bool {
        self.lasted.saturating_sub(self.asked.unwrap_or_default()) >= self.patience / 4
    }

    pub(super) fn ask(&mut self) {
        self.asked = Some(self.lasted);
    }

    /// Whether a keep-alive is unanswered.
    pub(super) fn is_asked(&self) -> bool {
        self.asked.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_asked_three_times_before_its_silence_is_too_long() {
        let mut silence = Silence::new(Duration::from_secs(8));
        let mut asked = Vec::new();
        for second in 1..=8 {
            silence.go_on(Duration::from_secs(1));
            if silence.too_long().is_none() && silence.is_to_ask() {
                silence.ask();
                asked.push(second);
            }
        }
        assert_eq!(asked, [2, 4, 6]);
        assert_eq!(silence.too_long(), Some(Duration::from_secs(8)));
    }

    #[test]
    fn a_word_of_the_host_ends_the_silence() {
        let mut silence = Silence::new(Duration::from_secs(8));
        silence.go_on(Duration::from_secs(7));
        silence.ask();
        assert!(silence.is_asked());
        silence.end();
        silence.go_on(Duration::from_secs(1));
        assert!(silence.too_long().is_none() && !silence.is_to_ask() && !silence.is_asked());
    }
}
