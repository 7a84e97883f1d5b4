use std::time::Duration;

use kk_engine::{Finding, Severity};

use super::*;
use crate::{commands::add_nodes::tests::probed, testing};

/// A control plane and a worker of a running cluster.
const NODES: &str = "Node\tn1\tTrue\tv1.36.4\t\t\t\nNode\tn2\tTrue\tv1.36.4\t\t\t\n\
    ConfigMap\tkube-system/kubeadm-config\nConfigMap\tkube-public/cluster-info\nend\n";

/// The findings before an upgrade to v1.37.1, if the API gives these answers about objects and deprecated APIs.
async fn found(objects: &str, deprecated: &str, force: bool, spoil: impl Fn(&mut Probed)) -> Vec<Finding> {
    found_with(&["n1", "n2"], objects, deprecated, force, spoil).await
}

async fn found_with(
    drained: &[&str],
    objects: &str,
    deprecated: &str,
    force: bool,
    spoil: impl Fn(&mut Probed),
) -> Vec<Finding> {
    let mut spec = crate::commands::add_nodes::tests::spec();
    spec.hosts.truncate(2);
    spec.kubernetes.version = "v1.36.4".parse().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let session = testing::session(spec, directory.path());
    let probed = probed(&session, Some(NODES)).await;
    let inputs = session.create_inputs(&probed).await.unwrap();
    let names: Vec<_> =
        specs(&inputs).into_iter().map(|(host, probe)| (&*host.name, probe.questions.len())).collect();
    assert_eq!(names, [("n1", 2)]);
    let mut asked = Probed::default();
    let facts = asked.facts.entry("n1".into()).or_default();
    facts.reply(&OBJECTS, objects);
    facts.reply(&DEPRECATED, deprecated);
    spoil(&mut asked);
    let mut found = Findings::default();
    let how = Drain { force, timeout: Duration::from_mins(1) };
    let drained = drained.iter().map(|name| (*name).to_owned()).collect();
    findings(&inputs, &asked, "v1.37.1".parse().unwrap(), &drained, &how, &mut found);
    found.0
}

const OBJECTS_IN_THE_WAY: &str = "Budget\td/all\t0\t2\t2\t2\nBudget\td/now\t0\t2\t2\t3\nBudget\td/good\t1\t3\t2\t3\nBudget\td/none\t0\t0\t1\t0\n\
    Pod\td/lonely\tn2\nPod\td/pending\t\nPod\td/elsewhere\tn9\n\
    Webhook\tc/dead\td/dead\nWebhook\tc/alive\td/alive\nService\td/dead\t0\nService\td/alive\t2\nend\n";

#[tokio::test]
async fn all_that_stands_in_the_way_is_said_at_once() {
    let metric = |version: &str, removed: &str| {
        format!(
            "apiserver_requested_deprecated_apis{{group=\"g.io\",removed_release=\"{removed}\",resource=\"things\",subresource=\"\",version=\"{version}\"}} 1\n"
        )
    };
    let writers = "Manager\tthings of g.io/v1beta1\thelm\nManager\tthings of g.io/v1beta1\tkubectl-edit\n";
    let metrics = [metric("v1beta1", "1.37"), metric("v1beta2", "1.38"), metric("v1", "")].concat();
    let deprecated = format!("{metrics}{writers}end\n");
    for (force, severity) in [(false, Severity::Error), (true, Severity::Warning)] {
        let found = found(OBJECTS_IN_THE_WAY, &deprecated, force, |_| {}).await;
        let wanted = [
            (
                Severity::Warning,
                "clients use things of g.io/v1beta1, which Kubernetes 1.37 no longer has; \
                 helm, kubectl-edit wrote objects with it",
            ),
            (Severity::Warning, "the webhook c/dead blocks the requests that it covers: its Service d/dead"),
            (Severity::Warning, "the PodDisruptionBudget d/all allows no eviction: it requires all 2"),
            (
                Severity::Warning,
                "the PodDisruptionBudget d/now allows no eviction now: 2 of 3 pods are healthy, and it requires 2",
            ),
            (severity, "no controller re-creates the pod d/lonely of n2"),
        ];
        assert_eq!(found.len(), wanted.len(), "{found:#?}");
        for (severity, words) in wanted {
            assert!(
                found.iter().any(|one| one.severity == severity && one.message.starts_with(words)),
                "{words}: {found:#?}"
            );
        }
    }
    assert!(found("end\n", "end\n", false, |_| {}).await.is_empty());
}

#[tokio::test]
async fn what_is_on_a_node_that_is_not_drained_is_not_in_the_way() {
    let lonely = "Pod\td/lonely\tn2\nend\n";
    assert_eq!(found(lonely, "end\n", false, |_| {}).await.len(), 1);
    let found = found_with(&["n1"], lonely, "end\n", false, |_| {}).await;
    assert!(found.is_empty(), "{found:?}");
}

#[tokio::test]
async fn no_answer_about_the_cluster_is_an_error_and_none_about_deprecated_apis_a_warning() {
    let silent = found("end\n", "cut off", false, |_| {}).await;
    assert!(matches!(&silent[..], [one] if one.severity == Severity::Warning), "{silent:?}");
    let spoils: [fn(&mut Probed); 2] = [
        |asked| asked.facts.get_mut("n1").unwrap().time_out(&OBJECTS),
        |asked| drop(asked.failures.insert("n1".into(), kk_engine::Failure::new("connection lost"))),
    ];
    for spoil in spoils {
        let found = found("end\n", "end\n", false, spoil).await;
        assert!(matches!(&found[..], [one] if one.severity == Severity::Error), "{found:?}");
    }
}
