//! Limits concurrent log-ins.

use std::sync::{Condvar, Mutex, PoisonError};

/// Log-ins to bastions. With more than ten, OpenSSH refuses new ones at random (`MaxStartups`), and all hosts of a cluster may be
/// behind the same bastion.
pub(super) static TO_BASTIONS: Logins = Logins::new(6);
/// Log-ins to hosts. A log-in is mostly computation on the control machine. If a thousand share its processors, each takes longer
/// than the host's or kk's own limit.
pub(super) static TO_HOSTS: Logins = Logins::new(64);

/// A limited number of permits for log-ins.
pub(super) struct Logins {
    free: Mutex<usize>,
    freed: Condvar,
}

/// A permit for one log-in. Dropping it releases it.
pub(super) struct Login<'a>(&'a Logins);

impl Logins {
    const fn new(most: usize) -> Self {
        Self { free: Mutex::new(most), freed: Condvar::new() }
    }

    /// Waits for a free permit.
    pub(super) fn begin(&self) -> Login<'_> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        *self.freed.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner) -= 1;
        Login(self)
    }
}

impl Drop for Login<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        thread,
    };

    use super::*;

    #[test]
    fn no_more_than_the_limit_log_in_at_once_and_all_get_their_turn() {
        static LOGINS: Logins = Logins::new(3);
        let (inside, most, done) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| {
                    let _login = LOGINS.begin();
                    most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    thread::yield_now();
                    inside.fetch_sub(1, Ordering::SeqCst);
                    done.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        assert!(most.into_inner() <= 3);
        assert_eq!(done.into_inner(), 20);
    }
}
