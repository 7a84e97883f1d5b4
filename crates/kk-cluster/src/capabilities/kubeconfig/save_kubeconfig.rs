//! Save the kubeconfig on the control machine.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use kk_config::Role;
use kk_engine::{Action, Apply, Change, Context, Facts, Failure, HostWork, Run, Task};
use kk_util::{sha256, write_private};

use crate::{
    base::{
        certificates,
        host_layout::ADMIN_CONF,
        kubeconfig::{AdminKubeconfig, LIMIT, authorities_of_kubeconfig},
        slots,
    },
    capabilities::control_plane,
    model::inputs::Inputs,
};

/// `kubekey/<cluster>/kubeconfig`, with the API's address in place of the name that only the hosts know.
pub(super) fn task(inputs: &Inputs) -> Task {
    let host = inputs.api_host;
    let renews = |facts| control_plane::renews(inputs, host, facts, "admin.conf");
    let save = save(inputs, inputs.facts(host).is_some_and(renews), None);
    Task::new("save_kubeconfig", "Save kubeconfig")
        .on(&host.name, HostWork::new(vec![Box::new(save)]).needs(slots::initialised_slot()))
}

/// `is_old`: the one on the host is another one than the probe saw. `known` are CAs, one of which it must hold; without them, those
/// of other control planes.
pub(super) fn save(inputs: &Inputs, is_old: bool, known: Option<BTreeSet<String>>) -> Save {
    Save {
        is_old,
        path: inputs.directory.join("kubeconfig"),
        source: super::source_sum(&inputs.directory),
        cluster: inputs.spec.kubernetes.cluster_name.clone(),
        // A CA that was replaced is no surprise when the cluster is new, or in a rotation.
        may_change: known.is_some() || !inputs.is_initialised(),
        known: known.unwrap_or_else(|| authorities_elsewhere(inputs)),
        server: inputs.endpoint().url_from_outside(),
    }
}

/// The CAs of the cluster as its other control planes hold them.
fn authorities_elsewhere(inputs: &Inputs) -> BTreeSet<String> {
    // Also those that this command leaves as they are.
    let others = inputs.answered().into_iter().filter(|(host, _)| host.name != inputs.api_host.name);
    let joined = others.filter(|(host, _)| host.has_role(&Role::ControlPlane) && inputs.has_joined(host));
    joined.filter_map(|(_, facts)| certificates::of(facts).remove("ca")).flat_map(|ca| ca.sums).collect()
}

#[derive(Clone)]
pub(super) struct Save {
    /// This run makes another one on the host.
    is_old: bool,
    path: PathBuf,
    source: PathBuf,
    cluster: String,
    server: String,
    known: BTreeSet<String>,
    may_change: bool,
}

impl Save {
    /// What the kubeconfig was made from. Without a load balancer the address changes while the first control plane is down.
    fn made_from(&self, sum: &str) -> String {
        format!("{sum} {}", self.server)
    }

    /// Verifies what the host has sent; `host` is its name.
    fn verify(&self, host: &str, bytes: &[u8]) -> Result<AdminKubeconfig, Failure> {
        let verified = AdminKubeconfig::verify(bytes).and_then(|verified| {
            let is_known = self.known.is_empty() || !self.known.is_disjoint(&verified.authorities());
            is_known.then_some(verified).ok_or_else(|| "its CA is not the CA of the cluster".to_owned())
        });
        verified.map_err(|why| {
            Failure::new(format!("{ADMIN_CONF} of {host} is refused: {why}")).hint(format!(
                "unless an administrator edited the file, {host} may be compromised: check the host before you use it again; \
                 if it was edited, re-create it there (kubeadm init phase kubeconfig admin) or copy the file of another control plane"
            ))
        })
    }
}

impl Action for Save {
    fn check(&self, facts: &Facts) -> Change {
        let wanted = facts.files.get(ADMIN_CONF).map(|file| self.made_from(&file.sha256));
        let made_from = std::fs::read_to_string(&self.source).ok();
        if !self.is_old && self.path.exists() && wanted.is_some() && made_from == wanted {
            return Change::None;
        }
        Change::needed(format!("write {}", self.path.display()))
    }

    fn apply(&self, _facts: &Facts) -> Apply {
        Apply::Run(Arc::new(self.clone()))
    }
}

#[async_trait]
impl Run for Save {
    async fn run(&self, context: Context) -> Result<(), Failure> {
        let bytes = context.connection.download(ADMIN_CONF, LIMIT).await?;
        let verified = self.verify(&context.host, &bytes)?;
        let before = std::fs::read_to_string(&self.path).unwrap_or_default();
        let before = authorities_of_kubeconfig(&before);
        if !self.may_change && !before.is_empty() && before.is_disjoint(&verified.authorities()) {
            (context.note)(format!(
                "the CA of the cluster differs from the CA in {}; unless an administrator replaced it, \
                 check the host",
                self.path.display()
            ));
        }
        let write = |path: &Path, text: &str| {
            write_private(path, text)
                .map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))
        };
        write(&self.path, &verified.text(&self.cluster, &self.server))?;
        write(&self.source, &self.made_from(&sha256(&bytes)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use kk_connector::FakeHost;
    use kk_engine::{FileFact, Slots};
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::{
        base::{
            certificates::CERTIFICATES,
            cluster_state::INITIALISED,
            host_layout::{CLUSTER_CA, KUBELET_CONF},
            kubeconfig::authorities_of_pem,
            questions::CREDENTIALS,
        },
        testing,
    };

    const ADMIN: &str = include_str!("../../base/kubeconfig/fixtures/ec.conf");

    fn save_to(directory: &Path, known: &[&str]) -> Save {
        Save {
            is_old: true,
            path: directory.join("kubeconfig"),
            source: directory.join(".kubeconfig.source"),
            cluster: "prod.local".into(),
            server: "https://192.0.2.1:6443".into(),
            known: known.iter().map(|sum| (*sum).to_owned()).collect(),
            may_change: false,
        }
    }

    /// Saves what a host has: the failure, if there is one, and what the user is told.
    async fn run(save: Save, admin: &str) -> (Result<(), Failure>, Vec<String>) {
        let host = FakeHost::new("node1").with_file(ADMIN_CONF, admin, 0o600);
        let notes = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&notes);
        let context = Context {
            host: "node1".into(),
            connection: Arc::new(host),
            slots: Slots::default(),
            cancel: CancellationToken::new(),
            progress: Arc::new(|_, _| {}),
            note: Arc::new(move |note| told.lock().unwrap().push(note)),
        };
        let result = save.run(context).await;
        let notes = notes.lock().unwrap().clone();
        (result, notes)
    }

    #[tokio::test]
    async fn it_is_written_with_the_own_address_and_for_its_owner_only() {
        let directory = tempfile::tempdir().unwrap();
        let of_host = ADMIN.replace("clusters:", "# of the host\nclusters:");
        let (result, notes) = run(save_to(directory.path(), &[]), &of_host).await;
        assert_eq!((result.is_ok(), notes), (true, vec![]));
        let saved = std::fs::read_to_string(directory.path().join("kubeconfig")).unwrap();
        assert!(
            !saved.contains("of the host") && saved.contains("server: https://192.0.2.1:6443\n"),
            "{saved}"
        );
        assert!(saved.contains("current-context: \"kubernetes-admin@prod.local\"\n"), "{saved}");
        let data = std::fs::metadata(directory.path().join("kubeconfig")).unwrap();
        assert_eq!(std::os::unix::fs::MetadataExt::mode(&data) & 0o777, 0o600);
        let source = std::fs::read_to_string(directory.path().join(".kubeconfig.source")).unwrap();
        assert_eq!(source, format!("{} https://192.0.2.1:6443", sha256(of_host.as_bytes())));
    }

    #[tokio::test]
    async fn one_that_starts_a_program_or_has_another_ca_is_refused_and_nothing_is_written() {
        let with_program = ADMIN.replace("  user:\n", "  user:\n    exec: {command: sh}\n");
        let large = format!("{ADMIN}# {}\n", "x".repeat(1 << 20));
        let other = "other";
        for (content, known, why) in [
            (&*with_program, &[][..], "its user has the field \"exec\", which starts a program"),
            (ADMIN, &[other][..], "its CA is not the CA of the cluster"),
            (&*large, &[], "larger than 1048576 bytes"),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let (result, _) = run(save_to(directory.path(), known), content).await;
            let failure = result.unwrap_err();
            assert!(failure.cause.contains(why) && failure.cause.contains("node1"), "{failure:?}");
            assert!(failure.cause.contains(ADMIN_CONF), "{failure:?}");
            assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        }
        let directory = tempfile::tempdir().unwrap();
        let (result, _) = run(save_to(directory.path(), &[]), &with_program).await;
        assert!(result.unwrap_err().hint.unwrap().contains("node1 may be compromised"));
    }

    #[tokio::test]
    async fn another_ca_than_before_is_told() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(run(save_to(directory.path(), &[]), ADMIN).await.1, [""; 0]);
        let of_another = include_str!("../../base/kubeconfig/fixtures/rsa.conf");
        let (result, notes) = run(save_to(directory.path(), &[]), of_another).await;
        assert!(
            result.is_ok() && notes.len() == 1 && notes[0].contains("differs from the CA in"),
            "{notes:?}"
        );
        let save = Save { may_change: true, ..save_to(directory.path(), &[]) };
        assert_eq!(run(save, ADMIN).await.1, [""; 0]);
    }

    #[tokio::test]
    async fn the_ca_of_another_control_plane_is_enough() {
        let directory = tempfile::tempdir().unwrap();
        let of_file = authorities_of_kubeconfig(ADMIN);
        assert_eq!(of_file.len(), 1);
        assert!(authorities_of_pem(b"none").is_empty());
        let known: Vec<&str> = of_file.iter().map(String::as_str).chain(["old"]).collect();
        assert!(run(save_to(directory.path(), &known), ADMIN).await.0.is_ok());
    }

    #[tokio::test]
    async fn the_cas_of_other_control_planes_are_known_and_a_rotation_names_its_own() {
        let mut spec = testing::sample("three-nodes.yaml");
        let names: Vec<String> = spec.hosts.iter().map(|host| host.name.clone()).collect();
        for host in &mut spec.hosts {
            host.roles.insert(Role::ControlPlane);
        }
        let pems: Vec<String> = names.iter().map(|_| testing::certificate(3650, 3000)).collect();
        let sums = |pem: &str| authorities_of_pem(pem.as_bytes());
        let mut probed = testing::fresh(&spec);
        for (name, pem) in names.iter().zip(&pems) {
            let facts = probed.facts.get_mut(name).unwrap();
            for path in [CLUSTER_CA, KUBELET_CONF] {
                facts.files.insert(path.into(), FileFact { sha256: "same".into(), ..FileFact::default() });
            }
            facts.reply(&INITIALISED, "yes");
            facts.reply(&CREDENTIALS, "yes");
            facts.reply(&CERTIFICATES, format!("@ca key - -\n{pem}end\n"));
        }
        // The last one is of another cluster.
        probed.facts.get_mut(&names[2]).unwrap().files.insert(CLUSTER_CA.into(), FileFact::default());
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec, directory.path());
        let inputs = session.create_inputs(&probed).await.unwrap();
        assert_eq!(inputs.api_host.name, names[0]);
        let found = save(&inputs, false, None);
        assert_eq!((found.known, found.may_change), (sums(&pems[1]), false));
        let found = save(&inputs, false, Some(sums(&pems[2])));
        assert_eq!((found.known, found.may_change), (sums(&pems[2]), true));
    }
}
