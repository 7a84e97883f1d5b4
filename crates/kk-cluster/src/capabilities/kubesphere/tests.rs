//! Tests what a create does about KubeSphere, depending on the results of the probe.

use std::collections::BTreeSet;

use kk_config::{Overrides, Spec};
use kk_engine::{FileFact, Plan, Severity};
use kk_util::sha256;
use serde_json::json;

use super::{manifest, state};
use crate::{
    base::{cluster_state::INITIALISED, host_layout::NOTES, probed::Probed},
    commands::{create_cluster, session::Session},
    testing,
};

/// A cluster of one host with this value of `spec.kubesphere`, and this spec in the second document.
fn spec(field: &str, document: &str) -> Spec {
    let text = format!(
        "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {{name: t}}\nspec:\n  hosts: [{{name: a, address: 192.0.2.1}}]\n  \
         roleGroups: {{etcd: [a], control-plane: [a], worker: [a]}}\n  registry: {{privateRegistry: hub.example.com}}\n  kubesphere: {field}\n\
         ---\nkind: ClusterConfiguration\nmetadata: {{name: ks-installer}}\nspec: {document}\n"
    );
    kk_config::load("test.yaml", &text, &Overrides::default())
        .unwrap_or_else(|errors| panic!("{errors}"))
        .spec
}

const IMAGE: &str = "{image: 'hub.example.com/ks-installer:1', version: v3.4.1}";

#[tokio::test]
async fn the_operator_gets_the_port_of_etcd() {
    let directory = tempfile::tempdir().unwrap();
    let mut spec = spec(IMAGE, "{}");
    spec.etcd.port = 12379;
    let (session, fresh) = (testing::session(spec.clone(), directory.path()), testing::fresh(&spec));
    let inputs = session.create_inputs(&fresh).await.unwrap();
    let configuration = manifest::configuration(&inputs, spec.kubesphere.as_ref().unwrap());
    assert_eq!(configuration["spec"]["etcd"]["port"], 12379);
}

/// Tasks of the module that have something to do.
async fn tasks(session: &Session, probed: &Probed) -> Vec<String> {
    let inputs = session.create_inputs(probed).await.unwrap();
    let plan = Plan::new(create_cluster::pipeline(&inputs).unwrap(), &probed.facts).unwrap();
    let of_module = plan.changes().into_iter().filter(|task| task.module == "kubesphere");
    of_module.map(|task| task.task).collect()
}

#[tokio::test]
async fn the_operator_gets_what_only_kk_knows() {
    let directory = tempfile::tempdir().unwrap();
    let (registry, localhost) =
        ("{local_registry: mine:5000}", "{etcd: {endpointIps: localhost, port: 2479}}");
    let sample = "{etcd: {monitoring: true, endpointIps: localhost, port: 2379, tlsEnable: true}}";
    let other = "{etcd: {monitoring: true, endpointIps: 198.51.100.1}}";
    let metrics =
        |address: &str| json!({"monitoring": true, "endpointIps": address, "port": 2381, "tlsEnable": false});
    for (document, pointer, expected) in [
        ("{}", "/etcd", json!({"endpointIps": "192.0.2.1", "port": 2379, "tlsEnable": true})),
        ("{}", "/local_registry", json!("hub.example.com")),
        (registry, "/local_registry", json!("mine:5000")),
        (localhost, "/etcd", json!({"endpointIps": "192.0.2.1", "port": 2479, "tlsEnable": true})),
        (sample, "/etcd", metrics("192.0.2.1")),
        ("{etcd: {monitoring: true, endpointIps: 192.0.2.1}}", "/etcd", metrics("192.0.2.1")),
        ("{etcd: {monitoring: true, endpointIps: '192.0.2.1, '}}", "/etcd/port", json!(2381)),
        ("{etcd: {monitoring: true, endpointIps: '192.0.2.1,198.51.100.1'}}", "/etcd/port", json!(2379)),
        (other, "/etcd/port", json!(2379)),
        ("{etcd: {endpointIps: 192.0.2.7}}", "/etcd/endpointIps", json!("192.0.2.7")),
    ] {
        let spec = spec(IMAGE, document);
        let (session, fresh) = (testing::session(spec.clone(), directory.path()), testing::fresh(&spec));
        let inputs = session.create_inputs(&fresh).await.unwrap();
        let configuration = manifest::configuration(&inputs, spec.kubesphere.as_ref().unwrap());
        assert_eq!(configuration["spec"].pointer(pointer), Some(&expected), "{document}");
    }
}

/// The key permits all changes of etcd, and Prometheus does not need it. A key for another etcd belongs to the user.
#[test]
fn a_key_to_etcd_does_not_stay_in_the_cluster() {
    for (own_etcd, key, replaced) in [("yes", "a2V5", true), ("yes", "", false), ("", "a2V5", false)] {
        let directory = tempfile::tempdir().unwrap();
        let program = |name: &str, text: &str| testing::program(directory.path(), name, text);
        program("crictl", "exit 0");
        program(
            "ctr",
            "case \"$*\" in *verify*) echo 'payload 1 with KubeSphere v3.4.1: 3 components' ;; esac",
        );
        program(
            "kubectl",
            &format!(
                "case \"$*\" in *'get secret'*) printf '{key}' ;; *'create secret'*) echo \"$*\" ;; replace*) cp secret.yaml replaced ;; esac"
            ),
        );
        let variables = [("image", "i"), ("wanted", ""), ("own_etcd", own_etcd), ("ca", "/ca.pem")];
        let operations = crate::capabilities::runtime::of(&testing::sample("all-in-one.yaml")).operations;
        let text = operations.to_owned() + &crate::base::shell::script(&variables, include_str!("deploy.sh"));
        let output = testing::run_script(directory.path(), &format!("kk_fail() {{ return 1; }}\n{text}"));
        assert!(output.status.success(), "{output:?}");
        let secret = std::fs::read_to_string(directory.path().join("replaced")).ok();
        assert_eq!(secret.is_some(), replaced, "{own_etcd} {key}");
        assert!(
            secret.is_none_or(|text| text.contains("etcd-client-ca.crt=/ca.pem") && !text.contains(".key"))
        );
    }
}

#[tokio::test]
async fn an_operator_without_an_image_is_refused_before_the_first_change() {
    let directory = tempfile::tempdir().unwrap();
    for (field, error) in [
        ("{enabled: true}", Some("no image of ks-installer is specified")),
        ("{}", None),
        ("{image: ./not-there.tar}", Some("./not-there.tar cannot be read")),
        (IMAGE, None),
    ] {
        let spec = spec(field, "{}");
        let session = testing::session(spec.clone(), directory.path());
        let findings = session.plan_create(&testing::fresh(&spec)).await.unwrap().findings;
        let errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
        let found = errors.filter(|finding| {
            finding.message.contains("ks-installer") || finding.message.contains("not-there")
        });
        assert_eq!(found.count(), usize::from(error.is_some()), "{field}: {findings:?}");
        assert!(
            error.is_none_or(|error| findings.iter().any(|one| one.message.contains(error))),
            "{findings:?}"
        );
    }
}

#[tokio::test]
async fn an_upgrade_refuses_it_before_its_first_turn() {
    let directory = tempfile::tempdir().unwrap();
    for (field, by, error) in [
        ("{image: ./not-there.tar}", "kk", Some("./not-there.tar cannot be read")),
        ("{enabled: true}", "kk", Some("no image of ks-installer is specified")),
        (IMAGE, "", Some("but not by kk")),
        (IMAGE, "kk", None),
    ] {
        let spec = spec(field, "{}");
        let session = testing::session(spec.clone(), directory.path());
        let mut probed = testing::fresh(&spec);
        let answer = format!("generation\t4\nby\t{by}\nend\n");
        probed.facts.get_mut("a").unwrap().reply(&state::STATE, answer);
        let version = spec.kubernetes.version;
        let way =
            crate::Hops { from: version, hops: vec![version], turns: Vec::new(), components: Vec::new() };
        let how = crate::model::options::Drain { force: false, timeout: std::time::Duration::ZERO };
        let never = tokio_util::sync::CancellationToken::new();
        let findings =
            session.upgrade_findings(&probed, &way, BTreeSet::default(), &how, &never).await.unwrap();
        let errors: Vec<_> = findings.iter().filter(|one| one.severity == Severity::Error).collect();
        assert_eq!(errors.is_empty(), error.is_none(), "{field}: {errors:?}");
        let said = |error: &str| errors.iter().any(|one| one.message.contains(error));
        assert!(error.is_none_or(said), "{field}: {errors:?}");
    }
}

#[tokio::test]
async fn only_a_create_deploys_it_and_waits_for_it() {
    let directory = tempfile::tempdir().unwrap();
    for field in [IMAGE, "{image: ./not-there.tar}"] {
        let spec = spec(field, "{}");
        let session = testing::session(spec.clone(), directory.path());
        let mut probed = testing::fresh(&spec);
        let failed = r#"{"phase": "Failed", "observedGeneration": 4}"#;
        let answer = format!("generation\t4\nby\t\nstatus\t{failed}\nend\n");
        probed.facts.get_mut("a").unwrap().reply(&state::STATE, answer);
        let plans = [
            session.plan_add(&probed).await.unwrap(),
            session.plan_renew(&probed, std::collections::BTreeSet::new()).await.unwrap(),
            session.plan_add_ons(&probed).await.unwrap(),
        ];
        for plan in plans {
            let tasks: Vec<_> =
                plan.plan.changes().into_iter().filter(|task| task.module == "kubesphere").collect();
            assert!(tasks.is_empty(), "{tasks:?}");
            let said = |finding: &&kk_engine::Finding| {
                finding.message.contains("KubeSphere") || finding.message.contains("not-there")
            };
            assert_eq!(plan.findings.iter().find(said), None);
        }
    }
}

#[tokio::test]
async fn a_kubesphere_of_somebody_else_is_not_taken_over() {
    let directory = tempfile::tempdir().unwrap();
    let spec = spec(IMAGE, "{}");
    let session = testing::session(spec.clone(), directory.path());
    for (by, refused) in [("", true), ("kk", false)] {
        let mut probed = testing::fresh(&spec);
        let answer = format!("generation\t4\nby\t{by}\nend\n");
        probed.facts.get_mut("a").unwrap().reply(&state::STATE, answer);
        let findings = session.plan_create(&probed).await.unwrap().findings;
        let found = findings
            .iter()
            .any(|one| one.severity == Severity::Error && one.message.contains("but not by kk"));
        assert_eq!(found, refused, "{by}");
    }
}

#[tokio::test]
async fn only_what_differs_is_applied_and_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let asked = spec(IMAGE, "{events: {enabled: true}}");
    let session = testing::session(asked.clone(), directory.path());
    let mut probed = testing::fresh(&asked);
    assert_eq!(tasks(&session, &probed).await, ["deploy_installer", "wait_until_ready", "record_installer"]);
    // A control plane that was not queried has not reported that nothing is installed.
    let phase = super::status(&session.create_inputs(&probed).await.unwrap()).unwrap().phase;
    assert_eq!(phase, "Unknown");
    let (manifest, revision) = {
        let inputs = session.create_inputs(&probed).await.unwrap();
        let image = inputs.installer.name().unwrap();
        (
            manifest::manifest(&inputs, asked.kubesphere.as_ref().unwrap(), &image).unwrap(),
            inputs.installer.revision(),
        )
    };
    let mut lines: Vec<String> = manifest.objects.iter().map(|object| object.key() + "\t1\n").collect();
    lines.sort();
    let file = |text: &str| {
        let [kind, mode, owner] = ["file", "600", "root:root"].map(str::to_owned);
        FileFact { sha256: sha256(text.as_bytes()), kind, mode, owner, ..FileFact::default() }
    };
    let answer = |phase: &str| {
        let status = json!({"phase": phase, "observedGeneration": 4, "revision": revision});
        let objects: Vec<String> = lines.iter().map(|line| format!("Object\t{line}")).collect();
        format!("generation\t4\nby\tkk\nstatus\t{status}\n{}end\n", objects.concat())
    };
    let facts = probed.facts.get_mut("a").unwrap();
    facts.reply(&INITIALISED, "yes");
    for (end, text) in [("yaml", &manifest.note), ("objects", &lines.concat())] {
        facts.files.insert(format!("{NOTES}/{}.{end}", manifest.name), file(text));
    }

    facts.reply(&state::STATE, answer("Ready"));
    let phase = super::status(&session.create_inputs(&probed).await.unwrap()).unwrap().phase;
    assert_eq!(phase, "Ready");
    let again = tasks(&session, &probed).await;
    assert!(!again.contains(&"deploy_installer".to_owned()), "{again:?}");
    // An object was deleted or edited.
    let first = format!("Object\t{}", lines[0]);
    for instead in [String::new(), first.replace("\t1", "\t2")] {
        let spoilt = answer("Ready").replace(&first, &instead);
        probed.facts.get_mut("a").unwrap().reply(&state::STATE, spoilt);
        assert!(tasks(&session, &probed).await.contains(&"deploy_installer".to_owned()), "{instead}");
    }
    // The document has changed.
    let changed = testing::session(spec(IMAGE, "{events: {enabled: false}}"), directory.path());
    probed.facts.get_mut("a").unwrap().reply(&state::STATE, answer("Ready"));
    assert!(tasks(&changed, &probed).await.contains(&"deploy_installer".to_owned()));
    // A run was killed while it waited.
    probed.facts.get_mut("a").unwrap().reply(&state::STATE, answer("Installing"));
    let killed = tasks(&session, &probed).await;
    assert!(
        killed.contains(&"wait_until_ready".to_owned()) && !killed.contains(&"deploy_installer".to_owned())
    );
}

#[tokio::test]
async fn metrics_of_etcd_at_another_port_are_warned_of_where_prometheus_shall_read_them() {
    let directory = tempfile::tempdir().unwrap();
    for (line, monitoring, warned) in [
        ("ETCD_LISTEN_METRICS_URLS=http://127.0.0.1:2381", true, true),
        ("ETCD_LISTEN_METRICS_URLS=http://192.0.2.1:2382", true, true),
        ("ETCD_LISTEN_METRICS_URLS=http://192.0.2.1:2381", true, false),
        ("ETCD_LISTEN_METRICS_URLS=http://127.0.0.1:2381", false, false),
    ] {
        let mut spec = spec(IMAGE, &format!("{{etcd: {{monitoring: {monitoring}}}}}"));
        spec.etcd.extra_args = vec![line.to_owned()];
        let session = testing::session(spec.clone(), directory.path());
        let findings = session.plan_create(&testing::fresh(&spec)).await.unwrap().findings;
        let said = findings.iter().any(|finding| finding.message.contains("ETCD_LISTEN_METRICS_URLS"));
        assert_eq!(said, warned, "{line} {monitoring}: {findings:?}");
    }
}
