//! Determines the health of members.

use kk_config::{Host, Spec};
use kk_engine::{Facts, Question, question};

use super::etcdctl::{ask_member_with, certificate, function, local_endpoint};
use crate::base::shell::script;

/// The function `healthy` of a script, which queries by `ctl`.
pub(crate) const FUNCTION: &str = include_str!("health.sh");

/// Whether the member of this host has a leader and commits.
pub(crate) const HEALTHY: Question<bool> = Question::new("etcd_healthy", "echo no", question::yes_or_no);

/// Whether the member of this host was healthy at the time of the probe.
pub(super) fn is_healthy(facts: &Facts) -> bool {
    facts.answer(&HEALTHY).answered() == Some(true)
}

/// The question for one host.
pub(super) fn question(spec: &Spec, host: &Host) -> Question<bool> {
    let ask = "if [ -e \"$certificate-key.pem\" ] && healthy; then echo yes; else echo no; fi\n";
    HEALTHY.with_snippet(of_member(spec, host, ask))
}

/// Succeeds when the member of this host has a leader and commits.
pub(super) fn command(spec: &Spec, host: &Host) -> String {
    of_member(spec, host, "[ -e \"$certificate-key.pem\" ]\nhealthy\n")
}

/// A script that queries the member of this host, and runs on this host.
fn of_member(spec: &Spec, host: &Host, text: &str) -> String {
    let (endpoints, certificate) = (local_endpoint(spec), certificate(host));
    let variables = [("endpoints", endpoints.as_str()), ("certificate", certificate.as_str())];
    script(&variables, &[&function("--command-timeout 2s"), FUNCTION, text].concat())
}

/// A script that runs on this host and succeeds if these other members are healthy; `None` if there are no other members.
pub(super) fn of_others(spec: &Spec, host: &Host, others: &[&Host]) -> Option<String> {
    let endpoint = |other: &&Host| format!("https://{}:{}", other.internal_address, spec.etcd.port);
    let endpoints: Vec<_> = others.iter().map(endpoint).collect();
    let (members, certificate) = (endpoints.join(" "), certificate(host));
    let variables = [("members", members.as_str()), ("certificate", certificate.as_str())];
    let text = "for endpoints in $members; do healthy; done\n";
    let text = [&function("--command-timeout 5s"), FUNCTION, text].concat();
    (!endpoints.is_empty()).then(|| script(&variables, &text))
}

/// A command that reads from the member of this host, and trusts only this CA.
pub(crate) fn with_ca(spec: &Spec, host: &Host, ca: &str) -> String {
    let ask = ask_member_with(spec, host, ca);
    format!("{ask} --command-timeout 5s get --consistency=l --keys-only kk-health")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    /// Since 3.5 `etcdctl endpoint health` fails with every alarm.
    #[test]
    fn a_full_database_is_healthy_and_one_that_differs_is_not() {
        for (leads, alarms, healthy) in [
            (true, "", true),
            (true, "memberID:1 alarm:NOSPACE ", true),
            (true, "memberID:1 alarm:NOSPACE \nmemberID:2 alarm:CORRUPT ", false),
            (false, "", false),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let etcdctl = format!(
                "case \"$*\" in\n*' get --consistency=l '*) {leads} ;;\n*' alarm list') echo '{alarms}' ;;\n*) exit 9 ;;\nesac"
            );
            testing::program(directory.path(), "etcdctl", &etcdctl);
            std::fs::write(directory.path().join("c-key.pem"), "").unwrap();
            let text = format!(
                "endpoints=e certificate=c\n{}{FUNCTION}[ -e \"$certificate-key.pem\" ]\nhealthy\n",
                function("")
            );
            let output = testing::run_script(directory.path(), &text);
            assert_eq!(output.status.success(), healthy, "{leads} {alarms} {output:?}");
        }
    }

    #[test]
    fn others_are_healthy_when_each_of_them_is() {
        let spec = testing::sample("three-nodes.yaml");
        let [own, others @ ..] = &spec.etcd_hosts()[..] else { panic!("three members") };
        let address = |host: &Host| format!("https://{}:2379", host.internal_address);
        for sick in [None, Some(0), Some(1)] {
            let directory = tempfile::tempdir().unwrap();
            let sick = sick.map_or_else(|| "none".to_owned(), |index: usize| address(others[index]));
            let etcdctl =
                format!("echo \"$*\" >>calls\ncase \"$*\" in *'--endpoints {sick} '*) exit 1 ;; esac");
            testing::program(directory.path(), "etcdctl", &etcdctl);
            let text = of_others(&spec, own, others).unwrap();
            let output = testing::run_script(directory.path(), &text);
            assert_eq!(output.status.success(), sick == "none", "{sick}");
            let calls = std::fs::read_to_string(directory.path().join("calls")).unwrap();
            assert!(!calls.contains(&address(own)), "{calls}");
        }
        assert_eq!(of_others(&spec, own, &[]), None);
    }
}
