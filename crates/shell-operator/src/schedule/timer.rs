//! Waits for the next time of any crontab and returns the crontabs that are due.
//!
//! One timer serves all hooks. Crontabs that are due at the same second are returned together, so that the runs of one hook can
//! be combined.

use jiff::Zoned;

use super::Crontab;

/// Keeps for each crontab when it is due next. `K` names the binding.
#[derive(Debug)]
pub struct Timer<K> {
    entries: Vec<Entry<K>>,
    /// The time of the last check.
    looked: Option<Zoned>,
}

#[derive(Debug)]
struct Entry<K> {
    key: K,
    crontab: Crontab,
    next: Option<Zoned>,
}

impl<K> Default for Timer<K> {
    fn default() -> Self {
        Self { entries: Vec::new(), looked: None }
    }
}

impl<K: Clone + PartialEq> Timer<K> {
    /// Adds a binding; its first time is after `now`.
    pub fn add(&mut self, key: K, crontab: Crontab, now: &Zoned) {
        let next = crontab.next(now);
        self.entries.push(Entry { key, crontab, next });
    }

    /// Removes every binding for which `remove` holds.
    pub fn remove(&mut self, remove: impl Fn(&K) -> bool) {
        self.entries.retain(|entry| !remove(&entry.key));
    }

    /// When something is due next.
    pub fn next(&self) -> Option<&Zoned> {
        self.entries.iter().filter_map(|entry| entry.next.as_ref()).min()
    }

    /// Bindings that are due at `now`, in the order they were added; each is then scheduled again.
    ///
    /// A time that passed while the machine slept is fired once, not once for each that was missed. When the clock was set back,
    /// everything is scheduled again.
    pub fn take_due(&mut self, now: &Zoned) -> Vec<K> {
        if self.looked.replace(now.clone()).is_some_and(|looked| *now < looked) {
            self.entries.iter_mut().for_each(|entry| entry.next = entry.crontab.next(now));
        }
        let mut due = Vec::new();
        for entry in &mut self.entries {
            if entry.next.as_ref().is_some_and(|next| next <= now) {
                due.push(entry.key.clone());
                entry.next = entry.crontab.next(now);
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Zoned {
        text.parse::<jiff::Timestamp>().unwrap().to_zoned(jiff::tz::TimeZone::UTC)
    }

    #[test]
    fn a_clock_that_is_set_back_delays_nothing() {
        let mut timer = Timer::default();
        timer.add("hourly", Crontab::parse("0 * * * *").unwrap(), &at("2026-03-01T10:30:00Z"));
        assert!(timer.take_due(&at("2026-03-01T10:59:59Z")).is_empty());
        assert!(timer.take_due(&at("2026-03-01T07:00:30Z")).is_empty());
        assert_eq!(timer.take_due(&at("2026-03-01T08:00:00Z")), ["hourly"]);
    }

    #[test]
    fn crontabs_of_the_same_second_are_due_together() {
        let mut timer = Timer::default();
        let start = at("2026-03-01T10:00:00.5Z");
        timer.add("even", Crontab::parse("*/2 * * * * *").unwrap(), &start);
        timer.add("every", Crontab::parse("* * * * * *").unwrap(), &start);
        timer.add("never", Crontab::parse("0 0 31 2 *").unwrap(), &start);
        assert_eq!(timer.next(), Some(&at("2026-03-01T10:00:01Z")));
        assert_eq!(timer.take_due(&at("2026-03-01T10:00:01Z")), ["every"]);
        assert_eq!(timer.take_due(&at("2026-03-01T10:00:01.1Z")), Vec::<&str>::new());
        assert_eq!(timer.take_due(&at("2026-03-01T10:00:02Z")), ["even", "every"]);
        timer.remove(|key| *key == "even");
        assert_eq!(timer.take_due(&at("2026-03-01T10:00:30Z")), ["every"], "missed times are fired once");
    }
}
