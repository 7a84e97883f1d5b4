//! Install the kubeconfig for the user who logs in to a control plane, where that is not root.

use kk_config::Host;
use kk_engine::{Answer, HostWork, Question, Task, actions::Command};

use crate::{
    base::{findings::Findings, shell::script, slots},
    capabilities::control_plane,
    model::inputs::Inputs,
};

/// Defines `may_become_root`. The scripts that renew an existing copy use it, too: without a renewal, the copy of a user who lost
/// the right, or got the copy from an earlier version, ends with its certificate.
pub(crate) const MAY_BECOME_ROOT: &str = include_str!("may_become_root.sh");

/// The kubeconfig of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UserCopy {
    /// It reaches the cluster.
    Usable,
    /// It does not exist, or does not reach the cluster.
    Missing,
    /// The user gets none, because sudo does not let the user run everything as root without a password.
    NoRight,
    /// The user gets none, because there is no home directory for it.
    NoHome,
}

/// Whether the user's kubeconfig reaches the cluster, and whether the user gets one at all.
pub(crate) const USABLE: Question<UserCopy> =
    Question::new("user_kubeconfig", "", |printed| match printed.trim() {
        "yes" => Some(UserCopy::Usable),
        "no" => Some(UserCopy::Missing),
        "no right" => Some(UserCopy::NoRight),
        "no home" => Some(UserCopy::NoHome),
        _ => None,
    });

/// Like root's, for a user who becomes root without a password: the administrator's rights are nothing new for them. A kubeconfig needs
/// no password either, so it would give more than sudo to a process of a user whom sudo asks for one.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("install_for_user", "Install kubeconfig for the user");
    for (host, facts) in inputs.control_planes().into_iter().filter(|(host, _)| host.user != "root") {
        let renewed = control_plane::renews(inputs, host, facts, "admin.conf");
        let text = script(&[("user", &host.user)], &install_for_user());
        let question = question(host);
        let copy = Command::new(format!("write the kubeconfig of {}", host.user), text)
            .when(move |facts| match facts.answer(&USABLE) {
                Answer::Answered(UserCopy::NoRight | UserCopy::NoHome) => false,
                Answer::Answered(UserCopy::Missing) | Answer::NotAsked => true,
                Answer::Answered(UserCopy::Usable) | Answer::Unanswered(_) => renewed,
            })
            .reads(move |probe| probe.ask(&question));
        task = task.on(&host.name, HostWork::new(vec![Box::new(copy)]).needs(slots::joined_slot(&host.name)));
    }
    task
}

/// Why users get no kubeconfig.
pub(super) fn findings(inputs: &Inputs, found: &mut Findings) {
    for (host, facts) in inputs.control_planes() {
        let user = &host.user;
        let why = match facts.answer(&USABLE).answered() {
            Some(UserCopy::NoRight) => {
                format!("the user {user} may not run every command as root without a password")
            }
            Some(UserCopy::NoHome) => format!("the user {user} has no home directory"),
            Some(UserCopy::Usable | UserCopy::Missing) | None => continue,
        };
        let instead = "use sudo kubectl there, or the kubeconfig on the control machine";
        found.adapted(host, why, format!("{user} gets no kubeconfig; {instead}"));
    }
}

fn install_for_user() -> String {
    [MAY_BECOME_ROOT, include_str!("install_for_user.sh")].concat()
}

fn question(host: &Host) -> Question<UserCopy> {
    USABLE.with_snippet(script(&[("user", &host.user)], &is_usable()))
}

fn is_usable() -> String {
    let home = "home=$(getent passwd \"$user\" | cut -d : -f 6)\n";
    let gets_none =
        "[ -d \"$home\" ] || { echo no home; exit; }\nmay_become_root || { echo no right; exit; }\n";
    [MAY_BECOME_ROOT, home, gets_none, "theirs=$home/.kube/config\n", include_str!("usable.sh")].concat()
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::MetadataExt as _};

    use super::*;
    use crate::testing;

    #[tokio::test]
    async fn only_a_user_other_than_root_whose_kubeconfig_does_not_work_gets_one() {
        let mut spec = testing::sample("all-in-one.yaml");
        for (user, answer, planned, said) in [
            ("root", None, false, None),
            ("ops", None, true, None),
            ("ops", Some("no"), true, None),
            ("ops", Some("yes"), false, None),
            (
                "ops",
                Some("no right"),
                false,
                Some("the user ops may not run every command as root without a password"),
            ),
            ("ops", Some("no home"), false, Some("the user ops has no home directory")),
        ] {
            spec.hosts[0].user = user.into();
            let directory = tempfile::tempdir().unwrap();
            let session = testing::session(spec.clone(), directory.path());
            let mut probed = testing::fresh(&spec);
            if let Some(answer) = answer {
                probed.facts.get_mut(&spec.hosts[0].name).unwrap().reply(&USABLE, answer);
            }
            let create = session.plan_create(&probed).await.unwrap();
            let there = create.plan.changes().iter().any(|task| task.task == "install_for_user");
            assert_eq!(there, planned, "{user} {answer:?}");
            let of_user = create.findings.iter().find(|found| found.hint.contains("gets no kubeconfig"));
            let expected = said.map(|said| (kk_engine::Severity::Adapted, said));
            assert_eq!(of_user.map(|found| (found.severity, &*found.message)), expected, "{answer:?}");
        }
    }

    #[test]
    fn the_kubeconfig_is_the_users_and_one_without_a_home_gets_none() {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path();
        let (user, owner) = testing::other_user(here, "home");
        fs::create_dir_all(here.join("etc/kubernetes")).unwrap();
        fs::write(here.join("etc/kubernetes/admin.conf"), "admin").unwrap();
        testing::program(here, "sudo", "echo '    (ALL : ALL) NOPASSWD: ALL'");
        let text = script(&[("user", &user)], &install_for_user())
            .replace("/etc/kubernetes", &format!("{}/etc/kubernetes", here.display()));
        let run = |text: &str| {
            let output = testing::run_script(here, &(testing::library(here) + text));
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(output.status.success(), "{said}");
            said
        };
        run(&text);
        let file = here.join("home/.kube/config");
        let data = fs::metadata(&file).unwrap();
        assert_eq!((fs::read_to_string(&file).unwrap(), data.uid()), ("admin".to_owned(), owner));
        assert_eq!((data.mode() & 0o7777, data.nlink()), (0o600, 1));
        run("kk_disown_all");
        assert_eq!(fs::read_dir(here.join("home")).unwrap().count(), 0);
        fs::remove_dir(here.join("home")).unwrap();
        let said = run(&text);
        assert!(said.contains(&format!("the user {user} has no home directory")), "{said}");
        assert!(!here.join("home").exists());
    }

    #[test]
    fn a_user_whom_sudo_asks_for_a_password_gets_no_kubeconfig() {
        for (rules, expected) in [
            ("(ALL : ALL) NOPASSWD: ALL", true),
            ("(ALL) SETENV: NOPASSWD: ALL", true),
            ("(root) NOPASSWD: SETENV: ALL", true),
            ("(ALL : ALL) ALL\n    (ALL) NOPASSWD: ALL", true),
            ("(ALL) NOPASSWD: ALL\n    (ALL : ALL) ALL", false),
            ("(ALL : ALL) ALL", false),
            ("(ALL) NOPASSWD: /usr/bin/systemctl restart nginx", false),
            ("(ALL) NOPASSWD: /usr/bin/true, PASSWD: ALL", false),
            ("(postgres) NOPASSWD: ALL", false),
            ("(ops, root : wheel) NOPASSWD: ALL", true),
            ("(ALL) NOPASSWD: /usr/bin/true, ALL", true),
            ("(ALL) NOPASSWD: ALL\n    (postgres) PASSWD: ALL", true),
            ("(rootless) NOPASSWD: ALL", false),
            ("(rootbackup : ALL) NOPASSWD: ALL", false),
            ("(ops : root) NOPASSWD: ALL", false),
            ("(ALL) NOPASSWD: /usr/bin/echo a\\, ALL", false),
            ("(ALL, !root) NOPASSWD: ALL", false),
            ("(ALL) NOPASSWD: ALL, !/bin/su", false),
            ("(ALL) NOPASSWD: NOTAFTER=20200101000000Z ALL", false),
            ("(ALL : ALL) NOTAFTER=20200101000000Z NOPASSWD: /usr/bin/id, ALL", false),
            ("(ALL : ALL) NOPASSWD: /usr/bin/true, CWD=/ PASSWD: /usr/bin/id, ALL", false),
            ("(root) NOPASSWD: /usr/bin/true, LOG_INPUT: PASSWD: /usr/bin/id, ALL", false),
            ("(root) NOPASSWD: LOG_INPUT: LOG_OUTPUT: ALL", true),
            ("(root) NOPASSWD: sha224:0GomF8mNN3wlDt1HD9XldjJ3SNgpFdbjO1+NsQ== ALL", false),
            ("(root) NOPASSWD: sha224:0GomF8mNN3wlDt1HD9XldjJ3SNgpFdbjO1+NsQ== /usr/bin/id, ALL", true),
            ("(ALL) NOPASSWD: ALL\n    (ALL) PASSWD: ALL, !/bin/su", false),
            ("(ALL) NOPASSWD: ALL\n    (root) /usr/bin/true, ALL", false),
            ("(ALL) NOPASSWD: ALL\n    (#0) CWD=/ ALL", false),
            ("(ALL) NOPASSWD: ALL\n    (ALL) NOPASSWD: !ALL", false),
            ("(ALL) NOPASSWD: ALL\n    (root) !/bin/su", false),
            ("User ops is not allowed to run sudo on node1.", false),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let here = directory.path();
            std::fs::write(
                here.join("rules"),
                format!("User ops may run the following commands:\n    {rules}\n"),
            )
            .unwrap();
            testing::program(here, "sudo", "[ \"$*\" = '-n -l -U ops' ] && cat rules");
            testing::program(here, "getent", &format!("echo 'ops:x:1:1::{}:/bin/sh'", here.display()));
            let library = "kk_note() { echo \"$1\"; }\nkk_put_as() { echo \"$1 $3\"; }\n";
            let said = |text: &str| {
                let output = testing::run_script(here, text);
                assert!(output.status.success(), "{rules}: {output:?}");
                String::from_utf8(output.stdout).unwrap()
            };
            let installed = said(&(library.to_owned() + &script(&[("user", "ops")], &install_for_user())));
            assert_eq!(installed.starts_with("ops /"), expected, "{rules}: {installed}");
            let answer = said(&script(&[("user", "ops")], &is_usable()));
            assert_eq!(answer.trim(), if expected { "no" } else { "no right" }, "{rules}");
            testing::program(here, "getent", "exit 2");
            assert_eq!(said(&script(&[("user", "ops")], &is_usable())), "no home\n");
        }
    }
}
