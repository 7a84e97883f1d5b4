//! Restore files that a control plane has lost and that all control planes share; they pass only through the memory of the
//! control machine.

use std::{fmt::Write as _, time::Duration};

use kk_config::Host;
use kk_connector::quote;
use kk_engine::{
    Action, Apply, Change, Facts, Failure, HostWork, Script, Slots, Task,
    actions::{Command, Unit},
};

use super::{
    RESTART, before_restart, manifests, note, renewal,
    share_certificates::Read,
    shared_files::{SHARED, lost, source},
};
use crate::{
    base::{api_server, host_layout::KUBECTL, shared_files, shell::script, slots},
    model::inputs::Inputs,
};

/// The name of the task.
pub(crate) const NAME: &str = "restore_shared_files";

/// Runs before any task needs the API, which may be down because these files are missing.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task =
        Task::new(NAME, "Restore files that control planes share").timeout(Duration::from_mins(10));
    let Some(source) = source(inputs) else { return task };
    let mut any = false;
    for (host, facts) in inputs.control_planes() {
        let names = lost(inputs, host, facts);
        if names.is_empty() {
            continue;
        }
        any = true;
        let mut work =
            HostWork::new(vec![Box::new(Restore { names })]).needs(slots::shared_files_slot().key());
        if !starts_later(inputs, host, facts) {
            work.actions.push(Box::new(Unit::started("kubelet.service")));
            work.actions.push(Box::new(start(host)));
            work = before_restart(inputs, host, work);
        }
        task = task.on(&host.name, work);
    }
    if any {
        let read = Read { names: &SHARED, slot: slots::shared_files_slot };
        let work = HostWork::new(vec![Box::new(read)]).provides(slots::shared_files_slot().key());
        task = task.on(&source.name, work);
    }
    task
}

/// Whether another task of this run waits for the static pods of the host, which may lack more files.
fn starts_later(inputs: &Inputs, host: &Host, facts: &Facts) -> bool {
    !renewal::of(inputs, host, facts).is_empty()
        || manifests::differ(inputs, host)
        || note::is_changed(inputs, host)
}

/// Running components have already read the files. Components that have ended without them are started now, without the back-off
/// of the kubelet.
fn start(host: &Host) -> Command {
    let server = api_server::url(host);
    let variables =
        [("server", server.as_str()), ("node", host.name.as_str()), ("again", ""), ("manifests", "")];
    Command::new("wait until the control plane is ready", format!("{KUBECTL}{}", script(&variables, RESTART)))
        .hint("does not become ready", "see \"crictl ps -a\" and \"journalctl -u kubelet\" on the host")
}

/// Writes these files.
#[derive(Clone)]
struct Restore {
    names: Vec<&'static str>,
}

impl Restore {
    fn script(&self, values: &Slots) -> Result<Script, Failure> {
        let shared = values
            .get(&slots::shared_files_slot())
            .ok_or_else(|| Failure::new("the shared files of the other control plane were not read"))?;
        let (mut text, mut files) = (String::new(), Vec::new());
        for name in &self.names {
            let missing = || Failure::new(format!("{name} of the other control plane was not read"));
            files.push(shared.payload(name).ok_or_else(missing)?);
            let (mode, name) = (shared_files::mode(name), quote(name));
            let _ = writeln!(
                text,
                "(umask 077 && base64 -d pki.{name} >file)\n\
                 kk_put file /etc/kubernetes/pki/{name} {mode} root:root\nrm -f file pki.{name}"
            );
        }
        Ok(Script { text, files, output: None })
    }
}

impl Action for Restore {
    fn check(&self, _facts: &Facts) -> Change {
        Change::needed(format!("write {} of another control plane", self.names.join(", ")))
    }

    fn apply(&self, _facts: &Facts) -> Apply {
        let restore = self.clone();
        Apply::Late(Box::new(move |values| restore.script(values)))
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use kk_engine::{FileFact, Finding, Plan, Severity};

    use super::*;
    use crate::{
        base::{
            cluster_state::INITIALISED,
            findings::Findings,
            shared_files::{
                SharedFiles,
                tests::{pem, printed},
            },
        },
        capabilities::control_plane::shared_files,
        commands::create_cluster,
        testing,
    };

    /// Two running control planes and a third host, whose files in `/etc/kubernetes/pki` have these checksums. Returns the
    /// findings, and the tasks of a create about shared files.
    async fn planned(hosts: [&[(&str, &str)]; 3]) -> (Vec<Finding>, Vec<String>) {
        planned_to_renew("", hosts).await
    }

    /// The same, where the renewal of this certificate was requested.
    async fn planned_to_renew(name: &str, hosts: [&[(&str, &str)]; 3]) -> (Vec<Finding>, Vec<String>) {
        let renew = [name.to_owned()].into_iter().filter(|name| !name.is_empty()).collect();
        let host = |n| format!("  - {{name: n{n}, address: 192.0.2.{n}}}\n");
        let names = (1..4).map(host).collect::<Vec<_>>().concat();
        let spec = testing::spec(&format!(
            "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {{name: t}}\nspec:\n  hosts:\n{names}  \
             roleGroups: {{etcd: [n1], control-plane: [n1, n2, n3], worker: [n1]}}\n  controlPlaneEndpoint: {{address: 192.0.2.1}}\n"
        ));
        let mut probed = testing::fresh(&spec);
        for (host, files) in spec.hosts.iter().zip(hosts) {
            let facts = probed.facts.get_mut(&host.name).unwrap();
            let file = |sum: &str| FileFact { sha256: sum.into(), ..FileFact::default() };
            for (name, sum) in files {
                facts.files.insert(format!("/etc/kubernetes/pki/{name}"), file(sum));
            }
            if !files.is_empty() {
                facts.files.insert("/etc/kubernetes/pki/ca.crt".into(), file("ca"));
                facts.files.insert("/etc/kubernetes/kubelet.conf".into(), file("own"));
            }
            facts.reply(&INITIALISED, if files.is_empty() { "no" } else { "yes" });
        }
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec, directory.path());
        let inputs = session.inputs_for(crate::model::command::Command::Renew(renew), &probed).await.unwrap();
        let mut found = Findings::default();
        shared_files::findings(&inputs, &mut found);
        let plan = Plan::new(create_cluster::pipeline(&inputs).unwrap(), &probed.facts).unwrap();
        let about = |name: &str| ["restore_shared_files", "share_certificates"].contains(&name);
        let tasks = plan.changes().into_iter().filter(|task| about(&task.task));
        (found.0, tasks.map(|task| format!("{} {}", task.task, task.host)).collect())
    }

    const ALL: [(&str, &str); 5] = [
        ("ca.key", "k"),
        ("front-proxy-ca.crt", "f"),
        ("front-proxy-ca.key", "p"),
        ("sa.key", "a"),
        ("sa.pub", "b"),
    ];

    fn without<'a>(lost: &[&str]) -> Vec<(&'a str, &'a str)> {
        ALL.into_iter().filter(|(name, _)| !lost.contains(name)).collect()
    }

    fn said(found: &[Finding]) -> Vec<(Severity, Option<&str>)> {
        found.iter().map(|finding| (finding.severity, finding.host.as_deref())).collect()
    }

    #[tokio::test]
    async fn what_one_control_plane_has_lost_comes_from_another() {
        assert_eq!(planned([&ALL, &ALL, &ALL]).await, (vec![], vec![]));
        for (name, is_empty) in SHARED.into_iter().flat_map(|name| [(name, false), (name, true)]) {
            for (index, host) in ["n1", "n2", "n3"].into_iter().enumerate() {
                let mut spoiled = without(&[name]);
                if is_empty {
                    spoiled.push((name, renewal::NOTHING));
                }
                let mut hosts: [&[_]; 3] = [&ALL; 3];
                hosts[index] = &spoiled;
                let (found, tasks) = planned(hosts).await;
                assert_eq!(said(&found), [(Severity::Adapted, Some(host))], "{name}");
                let source = if index == 0 { "n2" } else { "n1" };
                assert_eq!(found[0].hint, format!("copied from {source}"));
                let mut hosts = [host, source];
                hosts.sort_unstable();
                assert_eq!(tasks, hosts.map(|host| format!("restore_shared_files {host}")));
            }
        }
    }

    #[tokio::test]
    async fn what_nobody_has_or_nobody_knows_is_an_error() {
        let (key, both) = (without(&["sa.key"]), without(&["sa.key", "sa.pub"]));
        let other: Vec<_> =
            key.iter().map(|(name, sum)| (*name, if *name == "sa.pub" { "c" } else { *sum })).collect();
        let mut changed = ALL.to_vec();
        changed[3].1 = "other";
        for (hosts, errors) in [
            ([&key[..], &key, &key], 3),
            ([&both, &both, &both], 3),
            // The remaining file of its pair differs from that file of the other control planes.
            ([&ALL, &other, &ALL], 1),
            // The other control planes have different files.
            ([&ALL, &changed, &both], 1),
        ] {
            let (found, tasks) = planned(hosts).await;
            let found: Vec<_> = found.iter().filter(|finding| finding.severity == Severity::Error).collect();
            assert_eq!((found.len(), tasks.len()), (errors, 0), "{found:?}");
            assert!(found[0].message.contains("sa.key"), "{found:?}");
        }
        let (found, _) = planned([&ALL, &changed, &ALL]).await;
        assert_eq!(said(&found), [(Severity::Warning, None)], "{found:?}");
    }

    #[tokio::test]
    async fn a_key_of_a_ca_that_is_kept_elsewhere_is_a_warning() {
        let rest = without(&["ca.key", "front-proxy-ca.key"]);
        let (found, tasks) = planned([&rest, &ALL, &ALL]).await;
        assert_eq!((said(&found), tasks.len()), (vec![(Severity::Warning, Some("n1"))], 0));
        let (found, _) = planned_to_renew("apiserver", [&rest, &ALL, &ALL]).await;
        assert_eq!(said(&found), [(Severity::Error, Some("n1"))]);
        assert!(found[0].message.ends_with("so apiserver cannot be renewed"), "{found:?}");
        let front_proxy = without(&["front-proxy-ca.key"]);
        let (found, _) = planned_to_renew("apiserver", [&front_proxy, &ALL, &ALL]).await;
        assert_eq!(said(&found), [(Severity::Warning, Some("n1"))]);
        assert!(found[0].hint.starts_with("front-proxy-client is not renewed here"), "{found:?}");
    }

    #[tokio::test]
    async fn a_control_plane_that_joins_gets_its_files_from_one_that_has_them() {
        let rest = without(&["ca.key"]);
        let (found, tasks) = planned([&rest, &ALL, &[]]).await;
        assert_eq!(
            (said(&found), tasks),
            (vec![(Severity::Warning, Some("n1"))], vec!["share_certificates n2".into()])
        );
        let (found, _) = planned([&rest, &rest, &[]]).await;
        assert!(
            found.iter().any(|one| one.severity == Severity::Error && one.hint.contains("copy ca.key")),
            "{found:?}"
        );
    }

    #[test]
    fn the_files_are_written_for_root_only_and_never_named_in_the_script() {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path();
        let values = Slots::default();
        let printed = printed(&SHARED);
        let Ok(files) = SharedFiles::parse(&SHARED, &printed) else { panic!("{printed}") };
        values.fill(&slots::shared_files_slot(), files);
        let made = Restore { names: vec!["sa.key", "front-proxy-ca.crt"] }.script(&values).unwrap();
        assert!(!made.text.contains("PRIVATE"), "{}", made.text);
        for file in &made.files {
            fs::write(here.join(&file.name), &file.content[..]).unwrap();
        }
        let library = "kk_put() { cp \"$1\" \"${2##*/}\" && chmod \"$3\" \"${2##*/}\"; }\n";
        assert!(testing::run_script(here, &format!("{library}{}", made.text)).status.success());
        let bits = |name: &str| fs::metadata(here.join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(fs::read_to_string(here.join("sa.key")).unwrap(), pem("sa.key"));
        assert_eq!((bits("sa.key"), bits("front-proxy-ca.crt")), (0o600, 0o644));
        assert!(
            ["sa.pub", "file", "pki.sa.key", "pki.front-proxy-ca.crt"]
                .iter()
                .all(|name| !here.join(name).exists())
        );
    }
}
