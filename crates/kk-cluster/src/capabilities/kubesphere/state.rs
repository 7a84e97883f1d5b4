//! Reads the state of KubeSphere from the API.

use std::collections::BTreeMap;

use kk_config::Host;
use kk_engine::{ProbeSpec, Question};
use serde_json::Value;

use super::manifest;
use super::status::ComponentStatus;
use crate::{
    base::{
        api_server,
        cluster_state::{VERSION, object_list},
        shell::script,
    },
    capabilities::etcd,
    model::inputs::Inputs,
};

/// The state of KubeSphere as one control plane reports it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct State {
    /// Objects that kk applied, as `cluster_state` reports them.
    pub(super) objects: BTreeMap<String, String>,
    /// A Secret holds a key to etcd that Prometheus does not need.
    pub(super) has_etcd_key: bool,
    /// Why a pod of the operator does not run.
    pub(super) trouble: Option<String>,
    /// The error that the API returned instead of an answer.
    pub(super) error: Option<String>,
    /// The port of the console on every node.
    pub(super) console: Option<u16>,
    generation: i64,
    /// The API reports that the object does not exist.
    is_gone: bool,
    /// kk has created the object, or its owner has handed it over to kk.
    is_kks: bool,
    status: Value,
}

pub(super) const STATE: Question<State> = Question::new("kubesphere", "echo end", State::parse);

pub(super) fn asks(inputs: &Inputs, host: &Host, probe: &mut ProbeSpec) {
    let Some((wanted, image)) = super::wanted(inputs).zip(inputs.installer.name()) else { return };
    let Ok(manifest) = manifest::manifest(inputs, wanted, &image) else { return };
    let (objects, server) = (object_list(&manifest.objects), server(host));
    let own_etcd = if etcd::names_members(inputs.spec, wanted) { "yes" } else { "" };
    let variables =
        [("objects", objects.as_str()), ("version", VERSION), ("server", &server), ("own_etcd", own_etcd)];
    let text = concat!(include_str!("ask.sh"), include_str!("state.sh"));
    probe.ask(&STATE.with_snippet(script(&variables, text)));
}

/// The state that the control plane reports at which the API is queried. `None`: it did not report a state.
pub(super) fn of(inputs: &Inputs) -> Option<State> {
    inputs.facts(inputs.api_host)?.answer(&STATE).answered()
}

/// The address of a control plane's own API server. The endpoint may select an API server that is down.
pub(super) fn server(host: &Host) -> String {
    api_server::url(host)
}

impl State {
    /// `None`: the answer was cut off.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut state = Self::default();
        for line in text.strip_suffix("end\n")?.lines() {
            let Some((key, value)) = line.split_once('\t') else { continue };
            match key {
                "generation" => state.generation = value.parse().ok()?,
                "status" if !value.is_empty() => state.status = serde_json::from_str(value).ok()?,
                "by" => state.is_kks = value == manifest::KK,
                "trouble" => state.trouble = Some(value.to_owned()),
                "error" => state.error = Some(value.to_owned()),
                "console" => state.console = value.parse().ok(),
                "gone" => state.is_gone = true,
                "etcd-key" => state.has_etcd_key = true,
                "Object" => {
                    let (key, version) = value.split_once('\t')?;
                    state.objects.insert(key.to_owned(), version.to_owned());
                }
                _ => {}
            }
        }
        Some(state)
    }

    /// Whether the operator with this revision has reported on the current version of the object.
    pub(super) fn is_current(&self, revision: &str) -> bool {
        self.is_observed() && self.status["revision"] == revision
    }

    /// Whether an operator has reported on the current version of the object.
    pub(super) fn is_observed(&self) -> bool {
        self.generation > 0 && self.status["observedGeneration"] == self.generation
    }

    /// Whether the API reports that the object does not exist.
    pub(super) fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// Whether all components are as the object requests, or the object requests a plan, according to the running operator with
    /// this revision.
    pub(super) fn is_ready(&self, revision: &str) -> bool {
        self.is_current(revision) && self.trouble.is_none() && ["Ready", "Planned"].contains(&self.phase())
    }

    /// Whether another tool has installed KubeSphere.
    pub(super) fn is_of_others(&self) -> bool {
        self.generation > 0 && !self.is_kks
    }

    /// `Ready`, `Installing`, `Failed`, `Invalid`, …
    pub(super) fn phase(&self) -> &str {
        self.status["phase"].as_str().unwrap_or_default()
    }

    /// The installed version, once all components are ready.
    pub(super) fn version(&self) -> Option<&str> {
        self.status["core"]["version"].as_str()
    }

    pub(super) fn components(&self) -> Vec<ComponentStatus> {
        let component = |(name, entry): (&String, &Value)| {
            let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
            ComponentStatus { name: name.clone(), phase: text("phase"), message: text("message") }
        };
        self.status["components"].as_object().into_iter().flatten().map(component).collect()
    }

    /// The message of a condition, if the condition is not true or contains a warning.
    pub(super) fn condition(&self, kind: &str) -> Option<&str> {
        let conditions = self.status["conditions"].as_array()?;
        let condition = conditions.iter().find(|condition| condition["type"] == kind)?;
        condition["message"].as_str().filter(|message| !message.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_was_cut_off_is_none() {
        let whole = "generation\t2\nstatus\t{\"phase\":\"Ready\",\"observedGeneration\":2,\"revision\":\"r\"}\nconsole\t30880\n\
            trouble\tErrImagePull: no\nObject\tv1 Namespace /a\tuid 1\nend\n";
        let state = State::parse(whole).unwrap();
        assert!(state.is_current("r") && !state.is_current("other") && !state.is_ready("r"));
        assert!(State::parse(&whole.replace("trouble", "x")).unwrap().is_ready("r"));
        assert!(
            state.is_of_others() && !State::parse("generation\t1\nby\tkk\nend\n").unwrap().is_of_others()
        );
        assert_eq!(state.console, Some(30880));
        assert_eq!(state.objects["v1 Namespace /a"], "uid 1");
        assert_eq!(State::parse(&whole[..40]), None);
        assert_eq!(State::parse(""), None);
        assert!(!State::parse("end\n").unwrap().is_ready(""));
    }

    #[test]
    fn the_word_of_before_a_change_is_none() {
        let before =
            "generation\t3\nstatus\t{\"phase\":\"Ready\",\"observedGeneration\":2,\"revision\":\"r\"}\nend\n";
        assert!(!State::parse(before).unwrap().is_ready("r"));
    }
}
