//! Join a member: a member without data copies it from the other members. It is a learner at first, so that the others keep their
//! quorum.

use std::time::Duration;

use kk_artifact::Component;
use kk_config::Host;
use kk_engine::{
    Action, Facts, HostWork, Question, Task,
    actions::{Command, WaitUntil},
    question,
};

use super::{
    etcdctl,
    files::{JOINED, JOINED_TEXT, files, mount_note},
    health,
    identity::{Stranger, stranger},
    is_active,
    membership::{self, has_quorum, healthy},
    start_etcd,
};
use crate::{
    base::{error::BuildError, findings::Findings, shell::script, slots},
    capabilities::programs::{self, UPLOAD_TIMEOUT},
    model::inputs::Inputs,
};

/// How long a member may take to copy the data.
pub(super) const COPIES: Duration = Duration::from_mins(10);

/// Whether the member of a host has no data, or too little data to continue.
const LOST: Question<bool> = Question::new("etcd_has_lost_data", "echo no", question::yes_or_no);

pub(super) fn question(inputs: &Inputs) -> Question<bool> {
    let data = [("data", inputs.spec.etcd.data_dir.as_str())];
    LOST.with_snippet(script(&data, include_str!("has_lost_data.sh")))
}

/// Why the data of a member is unusable. kk does not check logs in another directory.
fn is_lost(inputs: &Inputs, facts: &Facts) -> Option<Lost> {
    let elsewhere = inputs.spec.etcd.extra_args.iter().any(|line| line.starts_with("ETCD_WAL_DIR="));
    if elsewhere || health::is_healthy(facts) {
        return None;
    }
    let is_lost = facts.answer(&LOST).answered() == Some(true);
    if is_lost { Some(Lost::Data) } else { stranger(inputs, facts).map(Lost::Identity) }
}

/// Why a member joins again.
enum Lost {
    /// Its data is missing or incomplete.
    Data,
    /// Its data belongs to no member of the cluster.
    Identity(Stranger),
}

/// Whether the member of the host joins in this run.
pub(super) fn joins(inputs: &Inputs, facts: &Facts) -> bool {
    is_lost(inputs, facts).is_some() && has_quorum(inputs)
}

pub(super) fn findings(inputs: &Inputs, found: &mut Findings) {
    for (host, facts) in inputs.etcd_hosts() {
        let Some(why) = is_lost(inputs, facts) else { continue };
        // A member that has not joined yet has nothing to lose.
        if !membership::has_vote(facts) {
            if inputs.is_initialised() && !has_quorum(inputs) {
                found.error(
                    host,
                    "too few members of etcd are healthy for another one to join",
                    "repair the members first: see \"journalctl -u etcd\" on their hosts",
                );
            }
            continue;
        }
        let data = &inputs.spec.etcd.data_dir;
        let (why, then) = match why {
            Lost::Data => (
                format!("etcd has lost its data in {data}"),
                "its member is removed and joins again with the data of the other members".to_owned(),
            ),
            Lost::Identity(stranger) => {
                let whose = match stranger {
                    Stranger::Removed => "a member that was removed from etcd",
                    Stranger::OtherCluster => {
                        "another etcd cluster than the other members (was it left out of a restore?)"
                    }
                };
                let then = format!(
                    "it is kept as {data}/member-before-TIME, and the member joins again with the data of \
                     the other members"
                );
                (format!("the data in {data} belongs to {whose}"), then)
            }
        };
        if has_quorum(inputs) {
            found.adapted(host, why, then);
        } else {
            found.error(
                host,
                format!("{why}, and too few other members are healthy for it to join again"),
                "repair the other members first (is a disk not mounted?); if their data is lost, too, \
                 restore etcd from a snapshot",
            );
        }
    }
}

/// The hosts whose members join in this run.
pub(super) fn joining<'a>(inputs: &Inputs<'a>) -> Vec<(&'a Host, &'a Facts)> {
    inputs.etcd_hosts().into_iter().filter(|(_, facts)| joins(inputs, facts)).collect()
}

/// The other members do not change. Joining members take turns with the members that `start_etcd` restarts.
pub(super) fn task(inputs: &Inputs) -> Result<Task, BuildError> {
    let mut task =
        Task::new("join_member", "Join a member").timeout(COPIES * 2 + UPLOAD_TIMEOUT).background();
    if let Some(turn) = start_etcd::turn(inputs) {
        task = task.turn(turn);
    }
    for (host, facts) in joining(inputs) {
        // The binary and the settings, which wait for the turn of the member; see start_etcd.
        let mut actions: Vec<Box<dyn Action>> = Vec::new();
        let fetched = programs::replace_in_turn(inputs, host, Component::Etcd, &mut actions);
        if is_active(facts) {
            actions.extend(files(inputs, host, facts)?);
        }
        // Data that another member wrote may be the only remaining copy.
        let keeps = matches!(is_lost(inputs, facts), Some(Lost::Identity(_)));
        let keep = script(&[("keep", if keeps { "yes" } else { "" })], include_str!("add_member.sh"));
        let add = Command::new("add the member as a learner", with_members(inputs, host, &keep));
        actions.push(Box::new(add.file("joined.env", JOINED_TEXT.as_bytes())));
        actions.push(Box::new(start_etcd::unit(inputs, host, facts)?.force_restart(true).no_block()));
        actions.push(Box::new(promote(inputs, host)));
        actions.push(Box::new(start_etcd::wait(inputs, host)));
        // From now on, the member reads the other members from its data when it starts.
        let joined = format!("kk_put joined.env {JOINED} 644 root:root\n");
        let joined = Command::new(format!("write {JOINED}"), joined);
        actions.push(Box::new(joined.file("joined.env", JOINED_TEXT.as_bytes())));
        actions.extend(mount_note(facts).map(|note| Box::new(note) as Box<dyn Action>));
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

/// Waits until the member has a vote. A killed run may have left a learner.
pub(super) fn promote(inputs: &Inputs, host: &Host) -> WaitUntil {
    let condition = with_members(inputs, host, include_str!("promote_member.sh"));
    WaitUntil::new("the member has a vote", condition)
        .within(COPIES)
        .hint(
            "has no member at",
            "was the member removed from etcd? Stop etcd on this host, move the directory \"member\" of its data aside, and run again",
        )
        .hint("", "see \"journalctl -u etcd\" on this host")
}

/// A script about the member of a host, which runs on that host and queries the healthy members on other hosts.
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

/// The same, but it queries these members.
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

/// The functions that these scripts share.
fn members() -> String {
    etcdctl::function("--command-timeout 5s") + include_str!("members.sh")
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use kk_engine::{FileFact, UnitFact};

    use super::*;
    use crate::{
        capabilities::etcd::{
            files::MOUNT,
            identity::{self, IDENTITY, MEMBERS},
            remove_lost_members,
        },
        testing,
    };

    /// A cluster of three members that is stored in a file, which this `etcdctl` prints and changes.
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

    fn add_member(keep: &str) -> String {
        script(&[("keep", keep)], include_str!("add_member.sh"))
    }

    fn run(directory: &Path, text: &str) -> bool {
        let program = |name: &str, text: &str| testing::program(directory, name, text);
        program("etcdctl", ETCDCTL);
        program(
            "systemctl",
            "case $1 in list-unit-files) cat units 2>/dev/null ;; show) echo \"Where=$PWD/data\" ;; -q) exit 1 ;; esac",
        );
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

    /// After a kill between any two steps, the next run completes the remaining steps.
    #[test]
    fn a_member_without_data_is_removed_added_and_promoted() {
        let members = members();
        let steps =
            [include_str!("remove_lost_member.sh"), &add_member(""), include_str!("promote_member.sh")]
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
        assert!(!run(directory.path(), &(members() + &add_member(""))));
        assert_eq!(read(&directory, "etcd-joined.env"), "");
    }

    /// The host of the member may have been replaced by a host with another address.
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
        for (file, line, stays) in [
            ("etc/fstab", "LABEL=x HERE/data ext4 defaults 0 0\n", true),
            ("etc/etcd-mount", "HERE\n", true),
            ("units", "-.mount generated\nvar-lib-etcd.mount static -\n", true),
            ("units", "var-lib-etcd.mount masked\n", false),
            ("etc/fstab", "LABEL=x HERE/dat ext4 defaults 0 0\n", false),
            ("etc/etcd-mount", "/\n", false),
        ] {
            let directory = with(MEMBER);
            fs::create_dir(directory.path().join("etc")).unwrap();
            let line = line.replace("HERE", &directory.path().display().to_string());
            fs::write(directory.path().join(file), line).unwrap();
            let remove = members() + include_str!("remove_lost_member.sh");
            assert_eq!(run(directory.path(), &remove), !stays, "{file}");
            assert_eq!(read(&directory, "calls"), if stays { "" } else { "remove\n" }, "{file}");
        }
    }

    #[test]
    fn the_mount_point_of_the_data_is_known_before_its_directory_is_there() {
        let directory = tempfile::tempdir().unwrap();
        for (words, printed) in [
            ("/dev/sdb1 100 1 99 1% /var/lib/etcd", "/var/lib/etcd\n"),
            ("/dev/mapper/a-b 100 1 99 -% /", "/\n"),
            ("10.0.0.1:/x y 100 1 99 100% /my data", "/my data\n"),
        ] {
            testing::program(
                directory.path(),
                "df",
                &format!("echo $2 >asked; echo Filesystem; echo '{words}'"),
            );
            let data = format!("{}/etcd/data", directory.path().display());
            let text = script(&[("data", &data)], include_str!("mount.sh"));
            let output = testing::run_script(directory.path(), &text);
            assert!(output.status.success());
            assert_eq!(String::from_utf8(output.stdout).unwrap(), printed);
            let asked = fs::read_to_string(directory.path().join("asked")).unwrap();
            assert_eq!(asked.trim(), directory.path().to_str().unwrap());
        }
    }

    #[tokio::test]
    async fn where_the_data_is_mounted_is_noted_when_a_member_is_healthy() {
        let (spec, directory) = (testing::sample("all-in-one.yaml"), tempfile::tempdir().unwrap());
        let mut probed = testing::fresh(&spec);
        probed.facts.values_mut().for_each(|facts| facts.reply(&MOUNT, "/data\n"));
        let session = testing::session(spec, directory.path());
        let inputs = session.create_inputs(&probed).await.unwrap();
        let task = start_etcd::task(&inputs).unwrap();
        let last = task.hosts.values().next().unwrap().actions.last().unwrap();
        let kk_engine::Apply::Script(note) = last.apply(&Facts::default()) else { panic!("no file") };
        assert!(note.text.contains("/etc/etcd-mount"), "{}", note.text);
        assert_eq!(&*note.files[0].content, b"/data\n");
    }

    #[test]
    fn a_list_that_was_not_given_changes_nothing() {
        for step in [include_str!("remove_lost_member.sh"), &add_member("yes")] {
            let directory = with("");
            fs::write(directory.path().join("list"), "").unwrap();
            fs::create_dir_all(directory.path().join("data/member")).unwrap();
            assert!(!run(directory.path(), &(members() + step)));
            assert_eq!(read(&directory, "calls"), "");
        }
    }

    #[test]
    fn data_of_another_member_is_kept_aside_and_useless_data_is_not() {
        for (keep, kept) in [("yes", 1), ("", 0)] {
            let directory = with("");
            fs::create_dir_all(directory.path().join("data/member/wal")).unwrap();
            for _ in 0..2 {
                assert!(run(directory.path(), &(members() + &add_member(keep))));
            }
            let names = fs::read_dir(directory.path().join("data")).unwrap();
            let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
            assert_eq!(names.len(), kept, "{names:?}");
            assert!(names.iter().all(|name| name.to_string_lossy().starts_with("member-before-")));
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

    /// Three members, of which `healthy` are healthy and the others have lost their data, or all files of their hosts (`anew`).
    /// Returns the hosts of the three tasks, and the findings.
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

    /// A create where the data of the first of three members has an identity, and the other healthy members report these lists.
    /// Returns whether the first member joins again, and the findings.
    async fn with_identity(lists: [&str; 2], quorum: bool) -> (bool, Vec<String>) {
        let (spec, directory) = (testing::sample("three-nodes.yaml"), tempfile::tempdir().unwrap());
        let mut probed = testing::fresh(&spec);
        for (index, host) in spec.etcd_hosts().iter().enumerate() {
            let facts = probed.facts.get_mut(&host.name).unwrap();
            let joined = FileFact { sha256: kk_util::sha256(JOINED_TEXT.as_bytes()), ..FileFact::default() };
            facts.files.insert(JOINED.into(), joined);
            facts.reply(&LOST, "no");
            let healthy = index == 1 || index == 2 && quorum;
            facts.reply(&health::HEALTHY, if healthy { "yes" } else { "no" });
            if healthy {
                facts.reply(&MEMBERS, lists[index - 1]);
            }
            if index == 0 {
                // Member 7 of cluster 1.
                let log = "04 00 00 00 00 00 00 84 08 04 10 00 00 00 00 00 0a 00 00 00 00 00 00 86 08 01 10 05 1a 04 08 07 10 01";
                facts.reply(&IDENTITY, log);
            }
        }
        let session = testing::session(spec, directory.path());
        let inputs = session.create_inputs(&probed).await.unwrap();
        let mut found = Findings::default();
        findings(&inputs, &mut found);
        identity::findings(&inputs, &mut found);
        let found = found.0.into_iter().map(|one| format!("{:?} {}", one.severity, one.message)).collect();
        (!joining(&inputs).is_empty(), found)
    }

    #[tokio::test]
    async fn a_member_whose_data_is_of_no_member_joins_again() {
        let with = r#"{"header":{"cluster_id":1},"members":[{"ID":7},{"ID":8},{"ID":9}]}"#;
        let without = r#"{"header":{"cluster_id":1},"members":[{"ID":8},{"ID":9}]}"#;
        let other = r#"{"header":{"cluster_id":2},"members":[{"ID":7}]}"#;
        for (lists, quorum, joins, words) in [
            ([with, with], true, false, None),
            ([with, without], true, false, None),
            (
                [without, without],
                true,
                true,
                Some("Adapted the data in /var/lib/etcd belongs to a member that was removed"),
            ),
            (
                [other, other],
                true,
                true,
                Some("Adapted the data in /var/lib/etcd belongs to another etcd cluster"),
            ),
            (
                [with, other],
                true,
                false,
                Some("Error the healthy members of etcd belong to different clusters"),
            ),
            (
                [without, ""],
                false,
                false,
                Some("Error the data in /var/lib/etcd belongs to a member that was removed"),
            ),
        ] {
            let (joined, found) = with_identity(lists, quorum).await;
            assert_eq!(joined, joins, "{lists:?} {found:?}");
            assert_eq!(found.len(), usize::from(words.is_some()), "{lists:?} {found:?}");
            assert!(found.iter().all(|one| one.starts_with(words.unwrap())), "{found:?}");
        }
    }

    /// The file of a learner contains the members with which it starts.
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
