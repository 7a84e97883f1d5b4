//! Join a member: one without data copies it from the others. It is a learner first, so that the others keep their quorum.

use std::time::Duration;

use kk_artifact::Component;
use kk_config::Host;
use kk_engine::{
    Facts, HostWork, Question, Task,
    actions::{Command, WaitUntil},
    question,
};

use super::{
    etcdctl,
    files::{JOINED, JOINED_TEXT, files},
    health, is_active,
    membership::{self, has_quorum, healthy},
    start_etcd,
};
use crate::{
    BuildError,
    capabilities::programs::{self, UPLOAD_TIMEOUT},
    findings::Findings,
    inputs::Inputs,
    shell::script,
    slots,
};

/// How long a member may take to copy the data.
pub(super) const COPIES: Duration = Duration::from_mins(10);

/// Whether the member of a host has no data, or not enough of it to go on.
const LOST: Question<bool> = Question::new("etcd_has_lost_data", "echo no", question::yes_or_no);

pub(super) fn question(inputs: &Inputs) -> Question<bool> {
    let data = [("data", inputs.spec.etcd.data_dir.as_str())];
    LOST.with_snippet(script(&data, include_str!("has_lost_data.sh")))
}

/// Whether the member has nothing to go on with. A log that lies elsewhere is not looked for.
fn is_lost(inputs: &Inputs, facts: &Facts) -> bool {
    let elsewhere = inputs.spec.etcd.extra_args.iter().any(|line| line.starts_with("ETCD_WAL_DIR="));
    !elsewhere && !health::is_healthy(facts) && facts.answer(&LOST).answered() == Some(true)
}

/// Whether the member of the host joins in this run.
pub(super) fn joins(inputs: &Inputs, facts: &Facts) -> bool {
    is_lost(inputs, facts) && has_quorum(inputs)
}

pub(super) fn findings(inputs: &Inputs, found: &mut Findings) {
    for (host, facts) in inputs.etcd_hosts() {
        if !is_lost(inputs, facts) {
            continue;
        }
        // One that has not joined yet has nothing to lose.
        if !membership::has_vote(facts) {
            if inputs.is_initialised() && !has_quorum(inputs) {
                found.error(
                    host,
                    "too few members of etcd are healthy for another one to join",
                    "bring the members back first: see \"journalctl -u etcd\" on their hosts",
                );
            }
            continue;
        }
        let data = &inputs.spec.etcd.data_dir;
        if has_quorum(inputs) {
            found.adapted(
                host,
                format!("etcd has lost its data in {data}"),
                "its member is removed and joins again, with the data of the others",
            );
        } else {
            found.error(
                host,
                format!("etcd has lost its data in {data}, and too few other members are healthy for it to join again"),
                "bring the other members back first (is a disk not mounted?); where their data is lost, too, restore etcd from a snapshot",
            );
        }
    }
}

/// The hosts whose members join in this run.
pub(super) fn joining<'a>(inputs: &Inputs<'a>) -> Vec<(&'a Host, &'a Facts)> {
    inputs.etcd_hosts().into_iter().filter(|(_, facts)| joins(inputs, facts)).collect()
}

/// The other members stay as they are, and take the turns with it.
pub(super) fn task(inputs: &Inputs) -> Result<Task, BuildError> {
    let mut task =
        Task::new("join_member", "Join a member").timeout(COPIES * 2 + UPLOAD_TIMEOUT).background();
    if let Some(turn) = start_etcd::turn(inputs) {
        task = task.turn(turn);
    }
    for (host, facts) in joining(inputs) {
        // Program and settings that wait for the turn of a member, see start_etcd.
        let mut actions = Vec::new();
        let fetched = programs::replace_in_turn(inputs, host, Component::Etcd, &mut actions);
        if is_active(facts) {
            actions.extend(files(inputs, host, facts)?);
        }
        let add = Command::new(
            "add the member as a learner",
            with_members(inputs, host, include_str!("add_member.sh")),
        );
        actions.push(Box::new(add.file("joined.env", JOINED_TEXT.as_bytes())));
        actions.push(Box::new(start_etcd::unit(inputs, host, facts)?.force_restart(true).no_block()));
        actions.push(Box::new(promote(inputs, host)));
        actions.push(Box::new(start_etcd::wait(inputs, host)));
        // From now on a start finds the members in its data.
        let joined = format!("kk_put joined.env {JOINED} 644 root:root\n");
        let joined = Command::new(format!("write {JOINED}"), joined);
        actions.push(Box::new(joined.file("joined.env", JOINED_TEXT.as_bytes())));
        let mut work = HostWork::new(actions)
            .needs(slots::etcd_configured_slot(&host.name))
            .provides(slots::etcd_healthy_slot(&host.name));
        work.needs.extend(fetched);
        for (lost, _) in joining(inputs) {
            work = work.needs(slots::lost_member_removed_slot(&lost.name));
        }
        task = task.on(&host.name, work);
    }
    Ok(task)
}

/// Waits until the member has a vote. A run that was killed may have left a learner behind.
pub(super) fn promote(inputs: &Inputs, host: &Host) -> WaitUntil {
    let condition = with_members(inputs, host, include_str!("promote_member.sh"));
    WaitUntil::new("the member has a vote", condition)
        .within(COPIES)
        .hint("", "see \"journalctl -u etcd\" on this host")
}

/// A script about the member of a host, run there. It asks those that are healthy on the other hosts.
pub(super) fn with_members(inputs: &Inputs, host: &Host, text: &str) -> String {
    with_members_at(inputs, host, host, text)
}

/// The same, run on the host `at`, with the certificate of its member.
pub(super) fn with_members_at(inputs: &Inputs, at: &Host, host: &Host, text: &str) -> String {
    let others = healthy(inputs).into_iter().filter(|other| other.name != host.name);
    let endpoints: Vec<_> =
        others.map(|other| format!("https://{}:{}", other.internal_address, inputs.spec.etcd.port)).collect();
    with_list(inputs, &endpoints, at, host, text)
}

/// The same, asking these members.
pub(super) fn with_list(inputs: &Inputs, endpoints: &[String], at: &Host, host: &Host, text: &str) -> String {
    let etcd = &inputs.spec.etcd;
    let variables = [
        ("endpoints", endpoints.join(",")),
        ("certificate", etcdctl::certificate(at)),
        ("name", format!("etcd-{}", host.name)),
        ("peer", format!("https://{}:{}", host.internal_address, etcd.peer_port)),
        ("data", etcd.data_dir.clone()),
    ];
    let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    script(&variables, &(members() + text))
}

/// The functions of these scripts.
fn members() -> String {
    etcdctl::function("--command-timeout 5s") + include_str!("members.sh")
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use kk_engine::{FileFact, UnitFact};

    use super::*;
    use crate::{capabilities::etcd::remove_lost_members, testing};

    /// A cluster of three members in a file, as etcdctl shows and changes them.
    const ETCDCTL: &str = r#"for last; do :; done
        case "$*" in
        *'member list'*) cat list ;;
        *'member remove'*) echo remove >>calls; sed -i "/^$last, /d" list ;;
        *'member add'*) echo add >>calls; echo "9, unstarted, , $last, , true" >>list ;;
        *'member promote'*) echo promote >>calls; sed -i "/^$last, /s/true$/false/" list ;;
        *'member update'*) echo update >>calls; sed -i "/^3, /s|https://c.old:2380|$last|" list ;;
        esac"#;
    const OTHERS: &str = "1, started, etcd-a, https://a:2380, https://a:2379, false\n2, started, etcd-b, https://b:2380, https://b:2379, false\n";
    const MEMBER: &str = "3, started, etcd-c, https://c:2380, https://c:2379, false\n";
    const ADDED: &str = "9, unstarted, , https://c:2380, , true\n";
    const AT_OLD_ADDRESS: &str = "3, started, etcd-c, https://c.old:2380, https://c.old:2379, false\n";
    const LEARNS: &str = "9, started, etcd-c, https://c:2380, https://c:2379, true\n";

    fn run(directory: &Path, text: &str) -> bool {
        let program = |name: &str, text: &str| testing::program(directory, name, text);
        program("etcdctl", ETCDCTL);
        program("systemctl", "[ \"$1\" != -q ]");
        program("journalctl", "cat journal");
        program("sleep", "exit 0");
        let here = directory.display().to_string();
        let library = "KK_ROOT=.\nkk_uptime() { echo . >>ticks; wc -l <ticks; }\nkk_fail() { return 1; }\nkk_put() { cp $1 ${2##*/}; }\n";
        let data = format!("{here}/data");
        let variables = [
            ("endpoints", "https://a:2379"),
            ("certificate", "/c/member-c"),
            ("name", "etcd-c"),
            ("peer", "https://c:2380"),
            ("data", &data),
        ];
        let text = script(&variables, text);
        let output = testing::run_script(directory, &format!("{library}{text}"));
        fs::write(directory.join("printed"), output.stdout).unwrap();
        output.status.success()
    }

    fn with(own: &str) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("list"), format!("{OTHERS}{own}")).unwrap();
        fs::write(directory.path().join("joined.env"), JOINED_TEXT).unwrap();
        directory
    }

    fn read(directory: &tempfile::TempDir, name: &str) -> String {
        fs::read_to_string(directory.path().join(name)).unwrap_or_default()
    }

    /// Killed between any two steps, the next run does those that are left.
    #[test]
    fn a_member_without_data_is_removed_added_and_promoted() {
        let members = members();
        let steps = [
            include_str!("remove_lost_member.sh"),
            include_str!("add_member.sh"),
            include_str!("promote_member.sh"),
        ]
        .map(|step| format!("{members}{step}"));
        for (own, calls) in [
            (MEMBER, "remove\nadd\npromote\n"),
            ("", "add\npromote\n"),
            (ADDED, "promote\n"),
            (LEARNS, "remove\nadd\npromote\n"),
            (AT_OLD_ADDRESS, "remove\nadd\npromote\n"),
        ] {
            let directory = with(own);
            assert!(steps.iter().all(|step| run(directory.path(), step)), "{own}");
            assert_eq!(read(&directory, "calls"), calls, "{own}");
            assert_eq!(
                read(&directory, "etcd-joined.env"),
                format!(
                    "{JOINED_TEXT}ETCD_INITIAL_CLUSTER=etcd-a=https://a:2380,etcd-b=https://b:2380,etcd-c=https://c:2380\n"
                )
            );
        }
    }

    #[test]
    fn a_member_is_not_given_the_identity_of_the_one_before_it() {
        let directory = with(MEMBER);
        assert!(!run(directory.path(), &(members() + include_str!("add_member.sh"))));
        assert_eq!(read(&directory, "etcd-joined.env"), "");
    }

    /// Its host may have been replaced by one with another address.
    #[test]
    fn a_member_leaves_by_its_name_or_its_address() {
        let remove = members() + include_str!("remove_member.sh");
        let both = format!("{AT_OLD_ADDRESS}{ADDED}");
        for (own, calls) in [(MEMBER, 1), (AT_OLD_ADDRESS, 1), (ADDED, 1), (&both, 2), ("", 0)] {
            let directory = with(own);
            assert!(run(directory.path(), &remove), "{own}");
            assert_eq!(read(&directory, "calls"), "remove\n".repeat(calls), "{own}");
            assert_eq!(read(&directory, "list"), OTHERS, "{own}");
        }
    }

    #[test]
    fn a_learner_of_a_killed_run_gets_its_vote() {
        let promote = members() + include_str!("promote_member.sh");
        for (own, calls, done) in [(LEARNS, "promote\n", true), (MEMBER, "", true), ("", "", false)] {
            let directory = with(own);
            assert_eq!(run(directory.path(), &promote), done, "{own}");
            assert_eq!(read(&directory, "calls"), calls, "{own}");
        }
    }

    #[test]
    fn a_member_with_another_address_keeps_its_identity_and_one_that_nobody_knows_is_an_error() {
        let step = members() + include_str!("move_member.sh");
        let old = MEMBER.replace("https://c:2380", "https://c.old:2380");
        for (own, calls, done) in [(&*old, "update\n", true), (MEMBER, "", true), ("", "", false)] {
            let directory = with(own);
            assert_eq!(run(directory.path(), &step), done, "{own}");
            assert_eq!(read(&directory, "calls"), calls, "{own}");
            assert_eq!(read(&directory, "list").contains(MEMBER), done, "{own}");
        }
    }

    #[test]
    fn a_member_whose_disk_is_not_mounted_stays() {
        let directory = with(MEMBER);
        fs::create_dir(directory.path().join("etc")).unwrap();
        let mount = format!("LABEL=x {}/data ext4 defaults 0 0\n", directory.path().display());
        fs::write(directory.path().join("etc/fstab"), mount).unwrap();
        let remove = members() + include_str!("remove_lost_member.sh");
        assert!(!run(directory.path(), &remove));
        assert_eq!(read(&directory, "calls"), "");
    }

    #[test]
    fn a_list_that_was_not_given_changes_nothing() {
        for step in [include_str!("remove_lost_member.sh"), include_str!("add_member.sh")] {
            let directory = with("");
            fs::write(directory.path().join("list"), "").unwrap();
            assert!(!run(directory.path(), &(members() + step)));
            assert_eq!(read(&directory, "calls"), "");
        }
    }

    #[test]
    fn data_is_lost_without_a_log_or_when_etcd_says_so() {
        const SAYS: &str = "panic: tocommit(9) is out of range [lastIndex(0)]. Was the raft log corrupted, truncated, or lost?\n";
        for (log, journal, lost) in [
            (None, "", "yes\n"),
            (Some("0.tmp"), "", "yes\n"),
            (Some("0-0.wal"), "panic: other\n", "no\n"),
            (Some("0-0.wal"), SAYS, "yes\n"),
        ] {
            let directory = with("");
            fs::write(directory.path().join("journal"), journal).unwrap();
            if let Some(log) = log {
                fs::create_dir_all(directory.path().join("data/member/wal")).unwrap();
                fs::write(directory.path().join("data/member/wal").join(log), "").unwrap();
            }
            assert!(run(directory.path(), include_str!("has_lost_data.sh")));
            assert_eq!(read(&directory, "printed"), lost, "{log:?}");
        }
    }

    /// Three members, of which these are healthy and the others have lost their data, or with it all that their hosts had: the
    /// hosts of the three tasks, and what is found.
    async fn planned(healthy: &[usize], anew: bool) -> ([Vec<String>; 3], Findings) {
        let spec = testing::sample("three-nodes.yaml");
        let (mut probed, directory) = (testing::fresh(&spec), tempfile::tempdir().unwrap());
        for (index, host) in spec.etcd_hosts().iter().enumerate() {
            let (facts, well) = (probed.facts.get_mut(&host.name).unwrap(), healthy.contains(&index));
            facts.units.insert("etcd.service".into(), UnitFact { active: well, ..UnitFact::default() });
            let joined = FileFact { sha256: kk_util::sha256(JOINED_TEXT.as_bytes()), ..FileFact::default() };
            if well || !anew {
                facts.files.insert(JOINED.into(), joined);
            }
            facts.reply(&health::HEALTHY, if well { "yes" } else { "no" });
            facts.reply(&LOST, if well { "no" } else { "yes" });
        }
        let session = testing::session(spec, directory.path());
        let inputs = session.create_inputs(&probed).await.unwrap();
        let mut found = Findings::default();
        findings(&inputs, &mut found);
        let tasks =
            [remove_lost_members::task(&inputs), task(&inputs).unwrap(), start_etcd::task(&inputs).unwrap()];
        (tasks.map(|task| task.hosts.into_keys().collect()), found)
    }

    #[tokio::test]
    async fn a_member_joins_again_while_the_others_have_a_quorum() {
        let (hosts, found) = planned(&[0, 2], true).await;
        assert_eq!(hosts.map(|hosts| hosts.len()), [1, 1, 2]);
        assert!(found.0.is_empty(), "{:?}", found.0);
        let (hosts, found) = planned(&[0, 2], false).await;
        assert_eq!(hosts.map(|hosts| hosts.len()), [1, 1, 2]);
        assert!(found.0.len() == 1 && found.0[0].message.contains("has lost its data"), "{:?}", found.0);
        assert_eq!(found.0[0].severity, kk_engine::Severity::Adapted);
    }

    /// Its file names the members with which it begins.
    #[tokio::test]
    async fn a_learner_of_a_killed_run_does_not_count_for_the_quorum() {
        let (spec, directory) = (testing::sample("three-nodes.yaml"), tempfile::tempdir().unwrap());
        let mut probed = testing::fresh(&spec);
        for (index, host) in spec.etcd_hosts().iter().enumerate() {
            let facts = probed.facts.get_mut(&host.name).unwrap();
            facts.reply(&health::HEALTHY, if index == 0 { "yes" } else { "no" });
            facts.reply(&LOST, "yes");
            if index == 1 {
                let learns = FileFact { sha256: "others".into(), ..FileFact::default() };
                facts.files.insert(JOINED.into(), learns);
            }
        }
        let session = testing::session(spec, directory.path());
        let inputs = session.create_inputs(&probed).await.unwrap();
        let mut found = Findings::default();
        findings(&inputs, &mut found);
        assert!(found.0.is_empty(), "{:?}", found.0);
        assert_eq!(joining(&inputs).len(), 2);
    }

    #[tokio::test]
    async fn no_member_is_removed_without_a_quorum() {
        for healthy in [&[0][..], &[]] {
            let (hosts, found) = planned(healthy, false).await;
            assert_eq!(hosts.map(|hosts| hosts.len()), [0, 0, 3]);
            assert_eq!(found.0.len(), 3 - healthy.len());
            assert!(found.0.iter().all(|finding| finding.severity == kk_engine::Severity::Error));
        }
    }
}
