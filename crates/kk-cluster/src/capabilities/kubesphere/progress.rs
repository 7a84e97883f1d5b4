//! Judges the states during the wait: messages for the user, and the end of the wait.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use kk_engine::Failure;

use super::{look::Seen, state::State};

/// A failure that lasts this long ends the wait: the operator tries again after seconds, and slow progress is not a failure.
/// Webhooks of KubeSphere's controllers refuse requests for 16 s after their start, and longer on a busy host.
const LASTING: Duration = Duration::from_mins(1);
/// The time limit for an operator that reports nothing: its pod starts, and the API may be unavailable.
const SILENCE: Duration = Duration::from_mins(4);
/// The name of the operator itself in the list of failures.
const OPERATOR: &str = "ks-installer";
/// Reasons for which a pod waits while it starts.
const STARTING: [&str; 2] = ["ContainerCreating", "PodInitializing"];

/// The states that were seen so far.
pub(super) struct Progress {
    revision: String,
    told: BTreeMap<String, String>,
    /// The start of each component's failure, by the name of the component.
    failing: BTreeMap<String, Duration>,
    heard: Duration,
}

impl Progress {
    /// For the operator with this revision.
    pub(super) fn new(revision: &str) -> Self {
        let (told, failing) = (BTreeMap::new(), BTreeMap::new());
        Self { revision: revision.to_owned(), told, failing, heard: Duration::ZERO }
    }

    /// Judges the state after this time of waiting.
    pub(super) fn look(&mut self, state: &State, now: Duration) -> Seen<Result<(), Failure>> {
        let mut seen = Seen::default();
        let mut failures: BTreeMap<String, String> = BTreeMap::new();
        if state.is_current(&self.revision) {
            self.heard = now;
            self.components(state, &mut seen.news, &mut failures);
            if let Some(message) = state.condition("SpecValid") {
                self.tell("the ClusterConfiguration", message, &mut seen.news);
            }
            seen.end = match state.phase() {
                "Ready" | "Planned" => Some(Ok(())),
                "Invalid" => {
                    let why = state.condition("SpecValid").unwrap_or_default();
                    Some(Err(Failure::new(format!("the ClusterConfiguration is not usable: {why}"))
                        .hint("correct the second document of the file")))
                }
                _ => None,
            };
        }
        // This applies even if the operator has reported before: while its pod does not run, it reports nothing more.
        if let Some(trouble) = state.trouble.as_ref().filter(|trouble| !is_starting(trouble)) {
            failures.insert(OPERATOR.to_owned(), trouble.clone());
        } else {
            self.failing.remove(OPERATOR);
        }
        if seen.end.is_none() {
            seen.end = self.failure(&failures, now).map(Err);
        }
        seen
    }

    fn components(&mut self, state: &State, news: &mut Vec<String>, failures: &mut BTreeMap<String, String>) {
        let components = state.components();
        let ready = components.iter().filter(|one| one.phase == "Ready").count();
        let mut phases = BTreeSet::new();
        for one in &components {
            phases.insert(one.name.clone());
            let message = if one.message.is_empty() { String::new() } else { format!(" ({})", one.message) };
            let what = match one.phase.as_str() {
                // The component is reported when its phase changes.
                "Waiting" => continue,
                "Ready" => format!("is ready, {ready} of {}", components.len()),
                "Failed" => {
                    failures.insert(one.name.clone(), one.message.clone());
                    format!("fails{message}")
                }
                phase => format!("is {}{message}", phase.to_lowercase()),
            };
            // The number of other ready components is no news about this component.
            let of = if one.phase == "Ready" { "Ready".to_owned() } else { what.clone() };
            if self.told.insert(one.name.clone(), of.clone()).as_ref() != Some(&of) {
                news.push(format!("KubeSphere: {} {what}", one.name));
            }
            if one.phase == "Ready" {
                self.failing.remove(&one.name);
            }
        }
        self.failing.retain(|name, _| phases.contains(name) || name == OPERATOR);
    }

    fn tell(&mut self, name: &str, message: &str, news: &mut Vec<String>) {
        if self.told.insert(name.to_owned(), message.to_owned()).as_deref() != Some(message) {
            news.push(format!("KubeSphere: {name}: {message}"));
        }
    }

    /// Between two tries, a component does not fail, but it has not become ready either.
    fn failure(&mut self, failures: &BTreeMap<String, String>, now: Duration) -> Option<Failure> {
        for name in failures.keys() {
            self.failing.entry(name.clone()).or_insert(now);
        }
        let lasting = failures.iter().filter(|(name, _)| now.saturating_sub(self.failing[*name]) >= LASTING);
        let lasting: Vec<String> = lasting.map(|(name, why)| format!("{name}: {why}")).collect();
        if !lasting.is_empty() {
            let hint = "fix the cause; ks-installer tries again by itself, and kk create cluster waits for it again. Its log: kubectl -n kubesphere-system logs deployment/ks-installer";
            return Some(Failure::new(format!("KubeSphere is not ready: {}", lasting.join("; "))).hint(hint));
        }
        (now.saturating_sub(self.heard) >= SILENCE).then(|| {
            let silence = SILENCE.as_secs();
            Failure::new(format!("ks-installer has not reported on the requested changes for {silence} s"))
                .hint("check its pod: kubectl -n kubesphere-system describe pod -l app=ks-installer")
        })
    }
}

fn is_starting(trouble: &str) -> bool {
    trouble.split(':').next().is_some_and(|reason| STARTING.contains(&reason))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn state(phase: &str, components: &Value) -> State {
        let status =
            json!({"phase": phase, "observedGeneration": 1, "revision": "r", "components": components});
        State::parse(&format!("generation\t1\nstatus\t{status}\nend\n")).unwrap()
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn each_step_of_a_component_is_told_once() {
        let mut progress = Progress::new("r");
        let (core, dns) = (json!({"phase": "Installing"}), json!({"phase": "Waiting", "message": "core"}));
        let first = state("Installing", &json!({"core": core, "dns": dns}));
        assert_eq!(progress.look(&first, at(1)).news, ["KubeSphere: core is installing"]);
        assert!(progress.look(&first, at(2)).news.is_empty());
        let ready = json!({"phase": "Ready"});
        let second = progress.look(&state("Installing", &json!({"core": ready, "dns": dns})), at(3));
        assert_eq!(second.news, ["KubeSphere: core is ready, 1 of 2"]);
        assert!(second.end.is_none());
        let third = progress.look(&state("Ready", &json!({"core": ready, "dns": ready})), at(4));
        assert_eq!(third.news, ["KubeSphere: dns is ready, 2 of 2"]);
        assert!(matches!(third.end, Some(Ok(()))));
    }

    #[test]
    fn a_failure_that_lasts_ends_the_wait_by_its_name() {
        let mut progress = Progress::new("r");
        let failed = state("Failed", &json!({"dns": {"phase": "Failed", "message": "no such image"}}));
        let trying = state("Installing", &json!({"dns": {"phase": "Installing"}}));
        assert!(progress.look(&failed, at(1)).end.is_none());
        assert!(progress.look(&trying, at(45)).end.is_none());
        let end = progress.look(&failed, at(61)).end.unwrap().unwrap_err();
        assert_eq!(end.cause, "KubeSphere is not ready: dns: no such image");
        // A component that became ready in between has not failed all the time.
        let mut progress = Progress::new("r");
        progress.look(&failed, at(1));
        progress.look(&state("Installing", &json!({"dns": {"phase": "Ready"}})), at(10));
        assert!(progress.look(&failed, at(65)).end.is_none());
    }

    #[test]
    fn an_operator_that_does_not_start_is_named() {
        let trouble = |reason: &str| State::parse(&format!("trouble\t{reason}\nend\n")).unwrap();
        let mut progress = Progress::new("r");
        for seconds in [1, 30, 60] {
            assert!(progress.look(&trouble("ContainerCreating: "), at(seconds)).end.is_none());
        }
        assert!(progress.look(&trouble("ErrImagePull: not found"), at(70)).end.is_none());
        let end = progress.look(&trouble("ImagePullBackOff: not found"), at(130)).end.unwrap().unwrap_err();
        assert!(end.cause.contains("ks-installer: ImagePullBackOff"), "{end}");
        // The previous operator reports that all components are ready.
        let mut progress = Progress::new("new");
        assert!(progress.look(&state("Ready", &json!({})), at(239)).end.is_none());
        let end = progress.look(&state("Ready", &json!({})), at(240)).end.unwrap().unwrap_err();
        assert!(end.cause.contains("has not reported"), "{end}");
    }

    #[test]
    fn an_operator_that_ends_again_and_again_after_its_first_word_is_named() {
        let mut progress = Progress::new("r");
        let status =
            json!({"phase": "Installing", "observedGeneration": 1, "revision": "r", "components": {}});
        let state = |trouble: &str| {
            State::parse(&format!("generation\t1\nstatus\t{status}\n{trouble}end\n")).unwrap()
        };
        assert!(progress.look(&state("trouble\tCrashLoopBackOff: x\n"), at(1)).end.is_none());
        assert!(progress.look(&state(""), at(10)).end.is_none(), "it runs again");
        assert!(progress.look(&state("trouble\tCrashLoopBackOff: x\n"), at(25)).end.is_none());
        let end = progress.look(&state("trouble\tCrashLoopBackOff: x\n"), at(85)).end.unwrap().unwrap_err();
        assert!(end.cause.contains("ks-installer: CrashLoopBackOff"), "{end}");
    }

    #[test]
    fn an_api_that_does_not_answer_at_all_ends_the_wait() {
        let mut progress = Progress::new("r");
        progress.look(&state("Installing", &json!({})), at(10));
        assert!(progress.look(&State::default(), at(240)).end.is_none());
        assert!(progress.look(&State::default(), at(250)).end.is_some());
    }

    #[test]
    fn a_spec_that_cannot_be_meant_ends_it_at_once() {
        let status = json!({"phase": "Invalid", "observedGeneration": 1, "revision": "r", "conditions": [{"type": "SpecValid", "message": "spec.x must be a map"}]});
        let state = State::parse(&format!("generation\t1\nstatus\t{status}\nend\n")).unwrap();
        let end = Progress::new("r").look(&state, at(1)).end.unwrap().unwrap_err();
        assert!(end.cause.ends_with("spec.x must be a map"), "{end}");
    }
}
