//! Answers of the API about possible blockers of an upgrade.

use std::{collections::BTreeMap, time::Duration};

use kk_config::Host;
use kk_engine::Question;

use crate::base::{api_server, shell::script};

/// Objects of the cluster. A cluster may have thousands of pods.
pub(super) const OBJECTS: Question<Objects> =
    Question::new("upgrade_objects", "echo end", Objects::parse).within(Duration::from_mins(3));

/// Deprecated APIs that clients requested at one API server.
pub(super) const DEPRECATED: Question<Vec<Deprecated>> =
    Question::new("deprecated_apis", "echo end", deprecated);

pub(super) fn objects_question(host: &Host) -> Question<Objects> {
    OBJECTS.with_snippet(script(&[("server", &server(host))], include_str!("ask_objects.sh")))
}

pub(super) fn deprecated_question(host: &Host) -> Question<Vec<Deprecated>> {
    DEPRECATED.with_snippet(script(&[("server", &server(host))], include_str!("ask_deprecated.sh")))
}

fn server(host: &Host) -> String {
    api_server::url(host)
}

/// Objects that are relevant for an upgrade.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Objects {
    pub budgets: Vec<Budget>,
    /// Pods that no controller re-creates: `namespace/name` and node.
    pub lonely: Vec<(String, String)>,
    /// Webhooks whose failure makes the API refuse requests: name, and `namespace/name` of the Service.
    pub webhooks: Vec<(String, String)>,
    /// Ready endpoints of these Services.
    pub endpoints: BTreeMap<String, u32>,
}

/// A `PodDisruptionBudget` and its status.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Budget {
    pub name: String,
    pub allowed: u32,
    pub healthy: u32,
    pub wanted: u32,
    pub pods: u32,
}

/// A deprecated API that a client has requested.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Deprecated {
    /// In the usual notation: `flowschemas of flowcontrol.apiserver.k8s.io/v1beta3`.
    pub name: String,
    /// The version of Kubernetes that removes it.
    pub removed: (u32, u32),
    /// The clients that have written objects through it.
    pub writers: Vec<String>,
}

impl Objects {
    fn parse(text: &str) -> Option<Self> {
        let mut objects = Self::default();
        for line in text.strip_suffix("end\n")?.lines() {
            match line.split('\t').collect::<Vec<_>>()[..] {
                ["Budget", name, allowed, healthy, wanted, pods] => {
                    // A budget that its controller has not processed yet has no numbers, and blocks nothing.
                    let [allowed, healthy, wanted, pods] =
                        [allowed, healthy, wanted, pods].map(|number| number.parse().unwrap_or(0));
                    objects.budgets.push(Budget { name: name.into(), allowed, healthy, wanted, pods });
                }
                ["Budget", ..] => {}
                ["Pod", name, node] => objects.lonely.push((name.into(), node.into())),
                ["Webhook", name, service] => objects.webhooks.push((name.into(), service.into())),
                ["Service", name, ready] => drop(objects.endpoints.insert(name.into(), ready.parse().ok()?)),
                _ => return None,
            }
        }
        Some(objects)
    }
}

/// Parses lines of the metric `apiserver_requested_deprecated_apis` (Kubernetes metrics reference). An API without a release that
/// removes it is skipped.
fn deprecated(text: &str) -> Option<Vec<Deprecated>> {
    let mut found = Vec::new();
    let lines = || text.strip_suffix("end\n").map(str::lines);
    let writers = |name: &str| {
        let of = |line: &str| match line.split('\t').collect::<Vec<_>>()[..] {
            ["Manager", api, manager] if api == name => Some(manager.to_owned()),
            _ => None,
        };
        Some(lines()?.filter_map(of).collect())
    };
    for line in lines()?.filter(|line| !line.starts_with("Manager\t")) {
        let label = |name: &str| {
            let (_, rest) = line.split_once(&format!("{name}=\""))?;
            rest.split_once('"').map(|(value, _)| value)
        };
        let (group, version) = (label("group")?, label("version")?);
        let (resource, removed) =
            (label("{resource").or_else(|| label(",resource"))?, label("removed_release")?);
        let Some((major, minor)) = removed.split_once('.') else { continue };
        let slash = if group.is_empty() { "" } else { "/" };
        let name = format!("{resource} of {group}{slash}{version}");
        let writers = writers(&name)?;
        found.push(Deprecated { name, removed: (major.parse().ok()?, minor.parse().ok()?), writers });
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metric_names_what_is_asked_for_and_when_it_goes() {
        let text = "apiserver_requested_deprecated_apis{group=\"\",removed_release=\"\",resource=\"componentstatuses\",subresource=\"\",version=\"v1\"} 1\n\
            apiserver_requested_deprecated_apis{group=\"flowcontrol.apiserver.k8s.io\",removed_release=\"1.32\",resource=\"flowschemas\",subresource=\"status\",version=\"v1beta3\"} 1\n\
            Manager\tflowschemas of flowcontrol.apiserver.k8s.io/v1beta3\thelm\n\
            Manager\tthings of flowcontrol.apiserver.k8s.io/v1beta3\tsomebody\nend\n";
        let gone = Deprecated {
            name: "flowschemas of flowcontrol.apiserver.k8s.io/v1beta3".into(),
            removed: (1, 32),
            writers: vec!["helm".into()],
        };
        assert_eq!(deprecated(text), Some(vec![gone]));
        assert_eq!(deprecated("end\n"), Some(Vec::new()));
        assert_eq!(deprecated(text.strip_suffix("end\n").unwrap()), None, "it was cut off");
    }

    #[test]
    fn who_writes_objects_by_an_api_that_goes_is_read_from_the_objects() {
        let directory = tempfile::tempdir().unwrap();
        let field = |manager: &str, version: &str| {
            format!(
                r#"{{"manager":"{manager}","operation":"Update","apiVersion":"g.io/{version}","fieldsV1":{{}}}}"#
            )
        };
        let objects =
            [field("helm", "v1beta1"), field("controller", "v1"), field("helm", "v1beta1")].join(",");
        let metric = |removed: &str, version: &str| {
            format!(
                r#"apiserver_requested_deprecated_apis{{group="g.io",removed_release="{removed}",resource="things",subresource="",version="{version}"}} 1"#
            )
        };
        let kubectl = format!(
            "echo \"$*\" >>calls\ncase $* in */metrics) echo '{}'; echo '{}' ;; *) echo '{objects}' ;; esac",
            metric("1.37", "v1beta1"),
            metric("", "v1alpha1"),
        );
        crate::testing::program(directory.path(), "kubectl", &kubectl);
        let text = script(&[("server", "https://n1:6443")], include_str!("ask_deprecated.sh"));
        let output = crate::testing::run_script(directory.path(), &text);
        let printed = String::from_utf8(output.stdout).unwrap();
        let wanted = Deprecated {
            name: "things of g.io/v1beta1".into(),
            removed: (1, 37),
            writers: vec!["helm".into()],
        };
        assert_eq!(deprecated(&printed), Some(vec![wanted]), "{printed}");
        let calls = std::fs::read_to_string(directory.path().join("calls")).unwrap();
        assert!(
            calls.lines().count() == 2 && calls.contains("/apis/g.io/v1beta1/things?limit=500"),
            "{calls}"
        );
    }

    #[test]
    fn objects_are_read_whole_or_not_at_all() {
        let text = "Budget\td/a\t0\t2\t2\t2\nBudget\td/new\t<no value>\t<no value>\t<no value>\t<no value>\nBudget\td/newer\t\n\
            Pod\td/lonely\tn1\nWebhook\tc/w\td/s\nService\td/s\t0\nend\n";
        let objects = Objects::parse(text).unwrap();
        assert_eq!((objects.budgets.len(), objects.budgets[0].pods, objects.budgets[1].pods), (2, 2, 0));
        assert_eq!(objects.lonely, [("d/lonely".to_owned(), "n1".to_owned())]);
        assert_eq!((objects.webhooks.len(), objects.endpoints["d/s"]), (1, 0));
        assert_eq!(Objects::parse("Pod\td/lonely\tn1\n"), None);
    }
}
