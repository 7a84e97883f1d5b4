//! Which lab of this machine a command works on. Several labs can be up at once: each has its own network namespace, control
//! groups, lock and state directory. They share the cache, which hosts only read.

use std::path::PathBuf;
use std::sync::OnceLock;

/// Two cores carry two labs; more than nine would not fit into any machine.
pub(crate) const MOST: u8 = 9;
const FIRST: u8 = 1;

static SELECTED: OnceLock<u8> = OnceLock::new();

/// Selects the lab for the rest of this process. Only the first call has an effect.
pub(crate) fn select(number: u8) {
    let _ = SELECTED.set(number);
}

/// Numbers of all labs that a machine can have.
pub(crate) fn all() -> impl Iterator<Item = u8> {
    FIRST..=MOST
}

fn number() -> u8 {
    *SELECTED.get().unwrap_or(&FIRST)
}

/// Whether this is the lab that a command without `--lab` uses.
pub(crate) fn is_first() -> bool {
    number() == FIRST
}

/// Name of the selected lab's network namespace, state directory and lock, and prefix of its control groups.
pub(crate) fn label() -> String {
    label_of(number())
}

/// No label is another label followed by `-`, so a prefix of control groups belongs to one lab only.
fn label_of(number: u8) -> String {
    if number == FIRST { "kk-lab".to_owned() } else { format!("kk-lab{number}") }
}

/// State directory of the selected lab. A fixed place, so that `down` finds what a crashed lab left without any record.
pub(crate) fn state_directory() -> PathBuf {
    state_of(number())
}

/// State directories of the other labs of this machine that are up or were not taken down.
pub(crate) fn other_states() -> Vec<PathBuf> {
    let others = (FIRST..=MOST).filter(|other| *other != number()).map(state_of);
    others.filter(|directory| directory.exists()).collect()
}

fn state_of(number: u8) -> PathBuf {
    PathBuf::from("/var/lib").join(label_of(number))
}

/// Name of a host for `systemd-nspawn`, which keeps one list of names for the whole machine.
pub(crate) fn machine(host: &str) -> String {
    if is_first() { host.to_owned() } else { format!("l{}-{host}", number()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_lab_takes_the_control_groups_of_another_one_for_its_own() {
        let labels: Vec<String> = (FIRST..=MOST).map(label_of).collect();
        for one in &labels {
            let matching =
                labels.iter().filter(|other| format!("{other}-node1").starts_with(&format!("{one}-")));
            assert_eq!(matching.count(), 1, "{one}");
        }
    }
}
