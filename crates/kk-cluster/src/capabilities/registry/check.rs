//! What speaks against a registry on a host, and against its removal.

use kk_config::{OwnRegistry, RegistryAuth};
use kk_engine::{Facts, ProbeSpec, Question, question};

use super::{PUSH_UNIT, PUSH_UNIT_FILE, SETTINGS, UNIT, UNIT_FILE, trust};
use crate::{
    base::{findings::Findings, pki::Pki},
    capabilities::os::ownership::other_run,
    model::inputs::Inputs,
};

/// bcrypt reads no more of a password.
const LONGEST_PASSWORD: usize = 72;

/// The cluster for which kk has set up the registry of a host; empty where there is none.
const CLUSTER: Question<String> =
    Question::new("registry_cluster", "cat /etc/registry/cluster 2>/dev/null || :", question::text);

/// Where the registry of a host keeps its images; empty where there is none.
const DATA: Question<String> = Question::new(
    "registry_data",
    r#"sed -n 's/^ *rootdirectory: "\(.*\)"$/\1/p' /etc/registry/config.yml 2>/dev/null || :"#,
    question::text,
);

/// Where the registry of a host was set up to keep its images. `None` where there is none, or the host did not say.
pub(crate) fn data(facts: &Facts) -> Option<String> {
    facts.answer(&DATA).answered().filter(|data| !data.is_empty())
}

pub(crate) fn asks(probe: &mut ProbeSpec) {
    probe.ask(&CLUSTER);
    probe.ask(&DATA);
    probe.units.extend([UNIT, PUSH_UNIT].map(str::to_owned));
    probe.files.insert(format!("{SETTINGS}/ca.crt"));
    other_run::asks(probe);
}

/// What speaks against setting it up.
pub(crate) fn findings(inputs: &Inputs, own: &OwnRegistry<'_>, pki: &Pki, found: &mut Findings) {
    let Some(facts) = inputs.facts(own.host) else { return };
    of_others(inputs, own, facts, pki, found);
    for (unit, file) in [(UNIT, UNIT_FILE), (PUSH_UNIT, PUSH_UNIT_FILE)] {
        if facts.units.contains_key(unit) && !facts.owns(file) {
            found.error(
                own.host,
                format!("{unit} is already installed, but not by kk"),
                "remove it first, or use a host without it",
            );
        }
    }
    found.unanswered(own.host, &facts.answer(&DATA), "where its registry keeps its images");
    let (there, wanted) =
        (facts.answer(&DATA).answered().unwrap_or_default(), &inputs.spec.registry.registry_data_dir);
    if !there.is_empty() && there != *wanted {
        found.error(
            own.host,
            format!("its registry stores its images in {there}, but the file sets {wanted}"),
            "correct spec.registry.registryDataDir; or run kk delete registry with the old value, move the \
             images, and run kk init registry again",
        );
    }
    let others = inputs.spec.with_role(&kk_config::Role::Registry);
    for host in others.iter().filter(|host| host.name != own.host.name) {
        found.warning(
            *host,
            format!("it has no registry: the registry of the cluster is on {}", own.host.name),
            "name one host in the role group registry",
        );
    }
    let auth = inputs.spec.registry.auths.get(&own.address);
    let trust = trust::directory(pki.directory()).display().to_string();
    if auth.is_some_and(|auth| auth.certs_path.as_ref().is_some_and(|path| *path != trust)) {
        found.error(
            own.host,
            format!(
                "spec.registry.auths.\"{}\".certsPath contains another CA than the registry will have",
                own.address
            ),
            format!("remove certsPath: kk creates a CA, and uses {trust}"),
        );
    }
    match auth.and_then(RegistryAuth::credentials) {
        None => found.warning(
            own.host,
            "every client that reaches the registry can read images",
            format!("set a username and password in spec.registry.auths.\"{}\"", own.address),
        ),
        Some(pair) if pair.password.expose().len() > LONGEST_PASSWORD => found.error(
            own.host,
            format!("the password of {} is longer than {LONGEST_PASSWORD} bytes", pair.username),
            "registries ignore the rest (bcrypt): use a shorter password",
        ),
        Some(pair) if pair.username.contains(':') => found.error(
            own.host,
            format!("the user name {} has a colon", pair.username),
            "a colon ends the name in HTTP and in the password file of the registry: use another name",
        ),
        Some(_) => {}
    }
    if inputs.spec.registry.private_registry.is_none() {
        found.warning(
            own.host,
            format!("the name of the registry is {}, but no image of the cluster comes from it", own.address),
            "set spec.registry.privateRegistry to this name",
        );
    }
    other_run::findings(inputs, found);
}

/// What speaks against its removal.
pub(crate) fn findings_of_delete(inputs: &Inputs, own: &OwnRegistry<'_>, pki: &Pki, found: &mut Findings) {
    let Some(facts) = inputs.facts(own.host) else { return };
    of_others(inputs, own, facts, pki, found);
    found.unanswered(own.host, &facts.answer(&DATA), "where its registry keeps its images");
    other_run::findings(inputs, found);
}

/// It was set up for another cluster, or from another machine: its clients trust another CA.
fn of_others(inputs: &Inputs, own: &OwnRegistry<'_>, facts: &Facts, pki: &Pki, found: &mut Findings) {
    let name = &inputs.spec.name;
    found.unanswered(own.host, &facts.answer(&CLUSTER), "which cluster its registry belongs to");
    let cluster = facts.answer(&CLUSTER).answered().unwrap_or_default();
    if cluster.is_empty() {
        return;
    }
    let theirs = facts.files.get(&format!("{SETTINGS}/ca.crt"));
    if cluster != *name {
        found.error(
            own.host,
            format!("its registry belongs to the cluster {cluster}"),
            format!("correct the file, or run kk delete registry with the file of {cluster}"),
        );
    } else if theirs.is_some_and(|ca| ca.sha256 != pki.ca_sum()) {
        let path = super::certificates(&inputs.directory);
        found.error(
            own.host,
            format!("its registry has another CA than {}", path.display()),
            "run where it was set up, or copy that directory from there",
        );
    }
}

#[cfg(test)]
mod tests {
    use kk_engine::{FileFact, Finding, Severity, UnitFact};

    use super::*;
    use crate::{base::probed::Probed, commands::session::Session, testing};

    fn session(registry: &str, directory: &std::path::Path) -> Session {
        let spec = testing::spec(&format!(
            "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {{name: t}}\nspec:\n  hosts:\n  \
             - {{name: a, address: 192.0.2.1}}\n  - {{name: b, address: 192.0.2.2}}\n  \
             roleGroups: {{etcd: [a], control-plane: [a], worker: [a, b], registry: [b]}}\n  registry: {registry}\n"
        ));
        testing::session(spec, directory)
    }

    /// The findings of an init on a host that is so.
    async fn found(registry: &str, spoil: impl Fn(&mut Facts)) -> Vec<Finding> {
        let directory = tempfile::tempdir().unwrap();
        let session = session(registry, directory.path());
        let mut probed: Probed = testing::fresh(session.spec());
        spoil(probed.facts.get_mut("b").unwrap());
        let plan = session.plan_init_registry(&probed).await.unwrap();
        plan.findings.into_iter().filter(|finding| !finding.message.contains("cannot reach")).collect()
    }

    const GOOD: &str = "{privateRegistry: hub.local, auths: {hub.local: {username: u, password: p}}}";

    /// The file may name a directory of something else by now.
    #[tokio::test]
    async fn a_delete_removes_images_from_where_the_registry_keeps_them() {
        let directory = tempfile::tempdir().unwrap();
        let session = session("{privateRegistry: hub.local, registryDataDir: /srv/new}", directory.path());
        for (answer, removed) in [("/srv/old\n", "remove /srv/old\""), ("", "remove /srv/new\"")] {
            let mut probed = testing::fresh(session.spec());
            let facts = probed.facts.get_mut("b").unwrap();
            facts.owned = vec![format!("made\t{UNIT_FILE}")].into();
            facts.reply(&DATA, answer);
            let plan = session.plan_delete_registry(&probed, true).await.unwrap().plan;
            let planned = serde_json::to_string(&plan.changes()).unwrap();
            assert!(planned.contains(removed), "{planned}");
        }
    }

    #[tokio::test]
    async fn a_fresh_host_gets_a_registry_and_only_it_changes() {
        assert!(found(GOOD, |_| {}).await.is_empty());
        let directory = tempfile::tempdir().unwrap();
        let session = session(GOOD, directory.path());
        let plan = session.plan_init_registry(&testing::fresh(session.spec())).await.unwrap().plan;
        let tasks: Vec<_> =
            plan.changes().into_iter().map(|task| format!("{} {}", task.host, task.task)).collect();
        assert_eq!(
            tasks,
            [
                "control download_registry",
                "control save_certificates",
                "b upload_registry",
                "b configure_registry",
                "b start_registry",
                "control ask_registry"
            ]
        );
    }

    /// The settings of the registry, what is on its host, and the finding.
    type Case<'a> = (&'a str, &'a dyn Fn(&mut Facts), Severity, &'a str);

    #[tokio::test]
    async fn what_speaks_against_it_is_named() {
        let long = format!(
            "{{privateRegistry: hub.local, auths: {{hub.local: {{username: u, password: {}}}}}}}",
            "x".repeat(73)
        );
        let colon = "{privateRegistry: hub.local, auths: {hub.local: {username: 'a:b', password: p}}}";
        let plain = |_: &mut Facts| {};
        let theirs = |facts: &mut Facts| facts.reply(&CLUSTER, "other\n");
        let elsewhere = |facts: &mut Facts| {
            facts.reply(&CLUSTER, "t\n");
            let sha256 = "of another".to_owned();
            facts.files.insert("/etc/registry/ca.crt".into(), FileFact { sha256, ..FileFact::default() });
        };
        let unit = |facts: &mut Facts| {
            facts.units.insert(UNIT.into(), UnitFact::default());
        };
        let port = |facts: &mut Facts| {
            facts.ports.insert(443, "nginx".into());
        };
        let push_unit = |facts: &mut Facts| {
            facts.units.insert(PUSH_UNIT.into(), UnitFact::default());
        };
        let push_port = |facts: &mut Facts| {
            facts.ports.insert(5443, "nginx".into());
        };
        let certs =
            "{privateRegistry: hub.local, auths: {hub.local: {username: u, password: p, certsPath: /usr}}}";
        let moved = |facts: &mut Facts| facts.reply(&DATA, "/srv/images\n");
        let cases: [Case<'_>; 12] = [
            (
                GOOD,
                &moved,
                Severity::Error,
                "stores its images in /srv/images, but the file sets /mnt/registry",
            ),
            (certs, &plain, Severity::Error, "contains another CA"),
            (&long, &plain, Severity::Error, "longer than 72 bytes"),
            (colon, &plain, Severity::Error, "has a colon"),
            ("{privateRegistry: hub.local}", &plain, Severity::Warning, "can read images"),
            (GOOD, &push_port, Severity::Error, "port 5443 is used by nginx"),
            (GOOD, &push_unit, Severity::Error, "registry-push.service is already installed"),
            (
                "{auths: {dockerhub.kubekey.local: {username: u, password: p}}}",
                &plain,
                Severity::Warning,
                "no image",
            ),
            (GOOD, &theirs, Severity::Error, "belongs to the cluster other"),
            (GOOD, &elsewhere, Severity::Error, "has another CA than"),
            (GOOD, &unit, Severity::Error, "not by kk"),
            (GOOD, &port, Severity::Error, "port 443 is used by nginx"),
        ];
        for (registry, spoil, severity, words) in cases {
            let found = found(registry, spoil).await;
            assert!(found.len() == 1 && found[0].severity == severity, "{words}: {found:?}");
            assert!(found[0].message.contains(words), "{words}: {found:?}");
        }
    }
}
