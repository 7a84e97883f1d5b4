//! Replaces the CAs of a running cluster (its own CA, and the CAs of the front proxy and of etcd) in three rounds. First,
//! everything trusts the old and the new CAs; then, the new CAs issue all certificates; finally, everything trusts only the new
//! CAs. No round begins before the previous round has ended on all hosts, so that clients and servers trust each other at all
//! times.
//!
//! The directory `/etc/kubekey/rotation` marks a host whose rotation has begun. It contains the old CAs and the number of the
//! last round that has ended on all hosts. The new CAs are on the control machine (`authorities`).

mod authorities;
mod end_rotation;
mod publish_ca;
mod record_round;
mod restart_workloads;
mod rotate_control_planes;
mod rotate_etcd;
mod rotate_workers;
mod save_authorities;

use std::sync::Arc;

use kk_config::Host;
use kk_engine::Module;

pub use authorities::Authorities;

use crate::{
    base::{
        findings::Findings,
        questions::ca_rotation::{STAGE, is_marked, stage},
        shell::script,
    },
    model::inputs::Inputs,
};

/// A round of the rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Round {
    /// The old CA and the new CA are trusted; the old CA signs.
    TrustBoth,
    /// The new CA signs, and all certificates that the old CA has signed are renewed.
    Issue,
    /// The old CA is no longer trusted.
    TrustNew,
}

impl Round {
    /// All rounds, in their order.
    pub const ALL: [Self; 3] = [Self::TrustBoth, Self::Issue, Self::TrustNew];

    /// The number of the round in scripts and in the mark.
    fn number(self) -> &'static str {
        match self {
            Self::TrustBoth => "1",
            Self::Issue => "2",
            Self::TrustNew => "3",
        }
    }
}

/// The workloads that restart, so that their pods trust the new CA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restarts {
    /// All workloads that have access to the API.
    All,
    /// Workloads that kk has created.
    Own,
}

/// The last round that has ended; 0 after the first round has begun. A host is marked with a round only after it has ended on all
/// hosts.
fn ended(inputs: &Inputs) -> Option<u8> {
    inputs.answered().into_iter().filter_map(|(_, facts)| stage(facts)).max()
}

/// Whether a rotation has begun and is not finished.
pub(crate) fn has_begun(inputs: &Inputs, authorities: &Authorities) -> bool {
    ended(inputs).is_some() || authorities.are_in_use()
}

/// Whether a rotation has begun with CAs that are not all on the control machine.
pub(crate) fn has_begun_elsewhere(inputs: &Inputs, authorities: &Authorities) -> bool {
    ended(inputs).is_some() && !authorities.are_on_disk()
}

/// The rounds that are not finished.
pub(crate) fn rounds(inputs: &Inputs, authorities: &Authorities) -> &'static [Round] {
    match ended(inputs) {
        None if authorities.are_in_use() => &[],
        None | Some(0) => &Round::ALL,
        Some(1) => &Round::ALL[1..],
        Some(_) => &Round::ALL[2..],
    }
}

/// Reports an unfinished rotation, which blocks every command except the rotation itself.
pub(crate) fn findings(inputs: &Inputs, found: &mut Findings) {
    for (host, facts) in inputs.answered() {
        found.unanswered(host, &facts.answer(&STAGE), "whether its CAs are being replaced");
        if is_marked(facts) {
            found.error(
                host,
                "a CA rotation was started on this host and is not finished",
                "run kk certs rotate-ca again to resume it",
            );
        }
    }
}

/// One round, on all hosts.
pub(crate) fn module(
    inputs: &Inputs,
    authorities: &Arc<Authorities>,
    round: Round,
    restarts: Restarts,
) -> Module {
    let mut tasks = vec![
        save_authorities::task(authorities),
        rotate_etcd::task(inputs, authorities, round),
        rotate_control_planes::task(inputs, authorities, round),
        rotate_workers::task(inputs, authorities, round),
    ];
    if round != Round::Issue {
        tasks.push(publish_ca::task(inputs, authorities, round));
    }
    if round == Round::TrustBoth {
        tasks.push(restart_workloads::task(inputs, authorities, restarts));
    }
    if round == Round::TrustNew {
        tasks.extend(end_rotation::tasks(inputs, authorities, round));
    } else {
        tasks.push(record_round::task(inputs, round));
    }
    Module::new("ca-rotation", tasks)
}

/// Removes the old CA of etcd from the control machine, which remains when a run was killed after its last round.
pub(crate) fn clean_up(authorities: &Authorities) -> Module {
    Module::new("ca-rotation", vec![end_rotation::remove(authorities)])
}

/// A script of a round, preceded by the part that all scripts of a rotation share.
fn text(round: Round, variables: &[(&str, &str)], parts: &[&str]) -> String {
    let mut all = vec![("round", round.number())];
    all.extend(variables);
    script(&all, &[&[include_str!("rotation.sh")], parts].concat().concat())
}

fn is_worker(host: &Host) -> bool {
    host.is_node() && !host.has_role(&kk_config::Role::ControlPlane)
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{MetadataExt as _, PermissionsExt as _},
        path::Path,
        process::Output,
    };

    use super::{Round, text};
    use crate::{capabilities::kubeconfig::MAY_BECOME_ROOT, testing};

    /// Runs parts of a round below a directory that represents the root directory of a host, and returns their output.
    fn run(directory: &Path, round: Round, parts: &[&str]) -> String {
        run_for(directory, "root", round, parts)
    }

    /// The same, where kk logs in as this user.
    fn run_for(directory: &Path, user: &str, round: Round, parts: &[&str]) -> String {
        let output = output(directory, user, round, parts);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn output(directory: &Path, user: &str, round: Round, parts: &[&str]) -> Output {
        let here = directory.display().to_string();
        let script = text(round, &[("user", user)], parts)
            .replace("/etc/", &format!("{here}/etc/"))
            .replace("/root", &format!("{here}/root"));
        testing::run_script(directory, &(testing::library(directory) + &script))
    }

    fn host(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        directory
    }

    #[test]
    fn the_ca_that_signs_comes_first_in_every_round() {
        let host = host(&[("etc/kubekey/rotation/ca.old", "old\n"), ("ca.new", "new\n")]);
        let trusted = Round::ALL.map(|round| run(host.path(), round, &["trusted ca\n"]));
        assert_eq!(trusted, ["old\nnew\n", "new\nold\n", "new\n"]);
    }

    #[test]
    fn a_file_that_a_power_cut_has_emptied_is_kept_again() {
        for (kept, wanted) in [("", "now\n"), ("before\n", "before\n")] {
            let host = host(&[("etc/kubekey/rotation/ca.old", kept), ("ca", "now\n")]);
            run(host.path(), Round::TrustBoth, &["keep ca ca.old\n"]);
            assert_eq!(fs::read_to_string(host.path().join("etc/kubekey/rotation/ca.old")).unwrap(), wanted);
        }
    }

    #[test]
    fn a_ca_that_cannot_be_written_to_disk_replaces_nothing() {
        for part in ["keep ca ca.old\n", "place ca /etc/kubernetes/pki/ca.crt 644\n"] {
            let host = host(&[("etc/kubernetes/pki/ca.crt", "before\n"), ("ca", "now\n")]);
            fs::create_dir_all(host.path().join("etc/kubekey")).unwrap();
            testing::program(
                host.path(),
                "sync",
                "[ $# -eq 0 ] || { echo 'sync: Input/output error' >&2; exit 1; }",
            );
            let output = output(host.path(), "root", Round::TrustBoth, &[part]);
            let reported = String::from_utf8_lossy(&output.stderr);
            assert!(
                !output.status.success() && reported.contains("to disk: sync: Input"),
                "{part}{reported}"
            );
            let read = |path: &str| fs::read_to_string(host.path().join(path)).ok();
            assert_eq!(read("etc/kubernetes/pki/ca.crt").as_deref(), Some("before\n"));
            assert_eq!(read("etc/kubekey/rotation/ca.old"), None);
        }
    }

    #[test]
    fn copies_of_the_kubeconfig_follow_it_and_keep_what_was_added() {
        let conf = |ca: &str, certificate: &str| {
            format!("    certificate-authority-data: {ca}\n    client-certificate-data: {certificate}\n")
        };
        let added = "    client-certificate-data: of-another-cluster\n";
        let host = host(&[
            ("etc/kubekey/rotation/admin.conf.2", &conf("b2xkCg==", "before")),
            ("etc/kubernetes/admin.conf", &conf("b2xkCg==", "after")),
            ("etc/kubernetes/manifests/kube-controller-manager.yaml", "- --cluster-signing-cert-file=x\n"),
            ("root/.kube/config", &(conf("b2xkCg==", "before") + added)),
            ("ca.crt", "new\nold\n"),
        ]);
        testing::program(host.path(), "getent", "exit 0");
        let parts = [
            MAY_BECOME_ROOT,
            include_str!("restart_with_cas.sh"),
            "staged=/etc/kubernetes/manifests\n",
            "edit_manifest\n",
        ];
        run(host.path(), Round::Issue, &parts);
        let read = |path: &str| fs::read_to_string(host.path().join(path)).unwrap();
        let both = crate::base::encoding::base64(b"new\nold\n");
        assert_eq!(read("etc/kubernetes/admin.conf"), conf(&both, "after"));
        assert_eq!(read("root/.kube/config"), conf(&both, "after") + added);
        let manifest = "etc/kubernetes/manifests/kube-controller-manager.yaml";
        assert!(read(manifest).contains("/signing-ca.crt\n"));
        fs::write(host.path().join("etc/kubekey/rotation/admin.conf.3"), "").unwrap();
        run(host.path(), Round::TrustNew, &parts);
        assert!(read(manifest).ends_with("/etc/kubernetes/pki/ca.crt\n"));
        assert_eq!(fs::read_dir(host.path().join("etc/kubernetes/manifests")).unwrap().count(), 1);
    }

    #[test]
    fn the_copy_of_the_user_is_written_as_that_user() {
        let conf = |ca: &str| format!("    certificate-authority-data: {ca}\n");
        let host = host(&[
            ("etc/kubekey/rotation/admin.conf.1", &conf("b2xkCg==")),
            ("etc/kubernetes/admin.conf", &conf("b2xkCg==")),
            ("home/.kube/config", &(conf("b2xkCg==") + "# added\n")),
            ("ca.crt", "old\nnew\n"),
            ("victim", "root's"),
        ]);
        let both = crate::base::encoding::base64(b"old\nnew\n");
        let (user, owner) = testing::other_user(host.path(), "home");
        let copy = host.path().join("home/.kube/config");
        for path in [&copy, &host.path().join("home/.kube")] {
            std::os::unix::fs::chown(path, Some(owner), None).unwrap();
        }
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o640)).unwrap();
        // A symbolic link at the path of the temporary file, which root must not follow.
        std::os::unix::fs::symlink(host.path().join("victim"), host.path().join("home/.kube/config.kk-new"))
            .unwrap();
        let parts = [MAY_BECOME_ROOT, include_str!("restart_with_cas.sh")];
        if owner == 65534 {
            testing::program(host.path(), "sudo", "echo '    (ALL) ALL'");
            let said = output(host.path(), &user, Round::TrustBoth, &parts);
            assert!(
                said.status.success() && String::from_utf8(said.stderr).unwrap().contains("becomes invalid")
            );
            assert!(!fs::read_to_string(&copy).unwrap().contains(&both));
        }
        testing::program(host.path(), "sudo", "echo '    (ALL) NOPASSWD: ALL'");
        run_for(host.path(), &user, Round::TrustBoth, &parts);
        assert_eq!(fs::read_to_string(&copy).unwrap(), conf(&both) + "# added\n");
        let data = fs::symlink_metadata(&copy).unwrap();
        assert_eq!((data.uid(), data.mode() & 0o7777), (owner, 0o640));
        assert_eq!(fs::read_to_string(host.path().join("victim")).unwrap(), "root's");
    }
}
