//! Another run of kk that works on a host at the same time, from another machine or directory.

use kk_config::Host;
use kk_engine::{Answer, Facts, Owner, ProbeSpec, Question};

use crate::{
    base::{error::BuildError, findings::Findings},
    model::inputs::Inputs,
};

/// The lock on the host.
pub(crate) const LOCK: Question<Option<Lock>> =
    Question::new("run_lock", include_str!("other_run.sh"), Lock::parse);

/// The remedy for another run.
const HINT: &str = "wait until it ends; the lock of a killed run expires two minutes after its last action";

/// The owner of the lock on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lock {
    busy: bool,
    age: u64,
    owner: String,
    name: String,
}

impl Lock {
    #[expect(clippy::option_option, reason = "no lock is an answer, too")]
    fn parse(printed: &str) -> Option<Option<Self>> {
        let lines: Vec<&str> = printed.lines().collect();
        match lines[..] {
            [] => Some(None),
            [state @ ("busy" | "idle"), age, owner, name] => {
                let (owner, name) = (owner.to_owned(), name.to_owned());
                Some(Some(Self { busy: state == "busy", age: age.parse().unwrap_or(0), owner, name }))
            }
            _ => None,
        }
    }
}

pub(crate) fn asks(probe: &mut ProbeSpec) {
    probe.ask(&LOCK);
}

pub(crate) fn findings(inputs: &Inputs, found: &mut Findings) {
    // A command for some hosts also works on control planes, and must not start during a run on the other hosts.
    for (host, facts) in inputs.answered() {
        if inputs.scope.contains(host) {
            found.unanswered(host, &facts.answer(&LOCK), "whether another kk works on it");
        }
        if let Some(message) = other(inputs, facts) {
            found.error(host, message, HINT);
        }
    }
}

/// Refuses to delete hosts on which another run works.
pub(crate) fn refuse(inputs: &Inputs) -> Result<(), BuildError> {
    let on_host = |(host, facts): (&Host, &Facts)| Some(format!("{}: {}", host.name, other(inputs, facts)?));
    let found: Vec<String> = inputs.hosts().into_iter().filter_map(on_host).collect();
    if found.is_empty() {
        return Ok(());
    }
    Err(BuildError::Foreign {
        what: format!("{}; nothing is removed", found.join("; ")),
        hint: HINT.to_owned(),
    })
}

fn other(inputs: &Inputs, facts: &Facts) -> Option<String> {
    let Answer::Answered(Some(lock)) = facts.answer(&LOCK) else { return None };
    let is_other = lock.owner != inputs.owner && (lock.busy || lock.age < Owner::IDLE.as_secs());
    is_other.then(|| format!("another kk works on it: {}, active {} s ago", lock.name, lock.age))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{commands::add_nodes, testing};

    /// A run that works on control planes to add a worker does not start during another run there.
    #[tokio::test]
    async fn another_run_on_a_host_outside_of_the_command_is_refused_too() {
        let spec = add_nodes::tests::spec();
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec, directory.path());
        let mut probed = add_nodes::tests::probed(&session, Some(add_nodes::tests::ANSWERED)).await;
        for (lock, refused) in [("", false), ("busy\n1\nother\nroot@b\n", true)] {
            probed.facts.get_mut("n1").unwrap().reply(&LOCK, lock);
            let add = session.plan_add(&probed).await.unwrap();
            assert!(!add.joining.iter().any(|host| host.name == "n1"));
            let is_about_it = |finding: &&kk_engine::Finding| {
                finding.host.as_deref() == Some("n1") && finding.message.contains("another kk works on it")
            };
            let found = add.findings.iter().filter(is_about_it).count();
            assert_eq!(found, usize::from(refused), "{:?}", add.findings);
        }
    }

    #[tokio::test]
    async fn another_run_is_refused_while_it_is_busy_or_was_active_lately() {
        let spec = testing::sample("three-nodes.yaml");
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec.clone(), directory.path());
        let mut probed = testing::fresh(&spec);
        let mine = session.create_inputs(&probed).await.unwrap().owner;
        for (lock, refused) in [
            (String::new(), false),
            ("idle\n119\nother\nroot@b\n".into(), true),
            ("idle\n120\nother\nroot@b\n".into(), false),
            ("busy\n7200\nother\nroot@b\n".into(), true),
            (format!("busy\n1\n{mine}\nroot@a\n"), false),
            ("busy\n".into(), true),
        ] {
            probed.facts.get_mut(&spec.hosts[0].name).unwrap().reply(&LOCK, lock.clone());
            let inputs = session.create_inputs(&probed).await.unwrap();
            let mut found = Findings::default();
            findings(&inputs, &mut found);
            assert_eq!(found.0.len(), usize::from(refused), "{lock}: {:?}", found.0);
        }
    }
}
