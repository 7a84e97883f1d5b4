//! Judges the states during the operator's uninstall: messages for the user, and the end of the wait.

use std::{collections::BTreeMap, time::Duration};

use super::{look::Seen, state::State};

/// The time without any change after which the remaining components are left, because a delete must end.
const STILL: Duration = Duration::from_mins(3);
/// A time longer than any uninstall; an uninstall without progress ends sooner.
pub(super) const LONGEST: Duration = Duration::from_mins(30);
/// The time limit for an operator or an API that reports nothing.
const SILENCE: Duration = Duration::from_mins(1);

/// The states that were seen so far.
#[derive(Default)]
pub(super) struct Removal {
    /// The last reported phase of each component.
    told: BTreeMap<String, String>,
    /// The times when the operator last reported, and when something last changed.
    heard: Duration,
    moved: Duration,
}

impl Removal {
    /// Judges the state after this time of waiting. The wait ends when everything is removed, or with the reason why the delete
    /// continues without this.
    pub(super) fn look(&mut self, state: &State, now: Duration) -> Seen<Result<(), String>> {
        let mut seen = Seen::default();
        if state.is_gone() {
            self.told.keys().for_each(|name| seen.news.push(removed(name)));
            seen.end = Some(Ok(()));
            return seen;
        }
        // Until the operator has seen the deletion, its status is outdated.
        if state.is_observed() {
            self.heard = now;
            self.components(state, now, &mut seen.news);
        }
        seen.end = self.why_not(state, now).map(Err);
        seen
    }

    fn components(&mut self, state: &State, now: Duration, news: &mut Vec<String>) {
        let before = news.len();
        let components = state.components();
        for one in &components {
            let message = if one.message.is_empty() { String::new() } else { format!(" ({})", one.message) };
            let what = format!("is {}{message}", one.phase.to_lowercase());
            if self.told.insert(one.name.clone(), what.clone()).as_ref() != Some(&what)
                && !["Waiting", "Ready"].contains(&one.phase.as_str())
            {
                news.push(format!("KubeSphere: {} {what}", one.name));
            }
        }
        self.told.retain(|name, _| {
            let is_left = components.iter().any(|one| one.name == *name);
            if !is_left {
                news.push(removed(name));
            }
            is_left
        });
        if news.len() > before {
            self.moved = now;
        }
    }

    fn why_not(&self, state: &State, now: Duration) -> Option<String> {
        let (silent, still) = (now.saturating_sub(self.heard), now.saturating_sub(self.moved));
        if silent >= SILENCE {
            if let Some(error) = &state.error {
                return Some(format!(
                    "the API has only returned an error for {} s: {error}",
                    silent.as_secs()
                ));
            }
            let trouble = state.trouble.as_ref().map_or_else(String::new, |why| format!(": {why}"));
            return Some(format!(
                "ks-installer has not reported anything for {} s{trouble}",
                silent.as_secs()
            ));
        }
        let left: Vec<String> = self.told.iter().map(|(name, what)| format!("{name} {what}")).collect();
        let left = left.join("; ");
        match () {
            () if still >= STILL => Some(format!("nothing has changed for {} s: {left}", still.as_secs())),
            () if now >= LONGEST => {
                Some(format!("it takes longer than {} min: {left}", LONGEST.as_secs() / 60))
            }
            () => None,
        }
    }
}

fn removed(name: &str) -> String {
    format!("KubeSphere: {name} is removed")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn state(components: &Value) -> State {
        let status = json!({"phase": "Removing", "observedGeneration": 2, "components": components});
        State::parse(&format!("generation\t2\nstatus\t{status}\nend\n")).unwrap()
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn removing(what: &str) -> Value {
        json!({"phase": "Removing", "message": what})
    }

    #[test]
    fn each_step_is_told_once_until_the_object_is_gone() {
        let mut removal = Removal::default();
        let waiting = json!({"phase": "Waiting", "message": "dns is removed first"});
        let first = state(&json!({"core": waiting, "dns": removing("removing: Workloads")}));
        let told = ["KubeSphere: dns is removing (removing: Workloads)"];
        assert_eq!(removal.look(&first, at(1)).news, told);
        assert_eq!(removal.look(&first, at(2)), Seen::default());
        let second = removal.look(&state(&json!({"core": removing("")})), at(3));
        assert_eq!(second.news, ["KubeSphere: core is removing", "KubeSphere: dns is removed"]);
        assert_eq!(second.end, None);
        let gone = State::parse("gone\tyes\nend\n").unwrap();
        let last = removal.look(&gone, at(4));
        assert_eq!(last.news, ["KubeSphere: core is removed"]);
        assert_eq!(last.end, Some(Ok(())));
    }

    #[test]
    fn what_goes_between_two_looks_is_told_too() {
        let mut removal = Removal::default();
        let ready = json!({"phase": "Ready"});
        let before = state(&json!({"core": ready, "dns": ready, "gate": ready}));
        assert_eq!(removal.look(&before, at(0)), Seen::default());
        let next = removal.look(&state(&json!({"core": removing("")})), at(1));
        let told = ["core is removing", "dns is removed", "gate is removed"];
        assert_eq!(next.news, told.map(|what| format!("KubeSphere: {what}")));
    }

    #[test]
    fn what_does_not_go_is_named_and_left() {
        let mut removal = Removal::default();
        let stuck = state(&json!({"core": removing("removing: CustomResources")}));
        for seconds in [1, 60, 120, 180] {
            assert_eq!(removal.look(&stuck, at(seconds)).end, None, "{seconds}");
        }
        let why = removal.look(&stuck, at(181)).end.unwrap().unwrap_err();
        assert!(why.contains("core is removing (removing: CustomResources)"), "{why}");
    }

    #[test]
    fn steps_that_go_on_are_waited_for() {
        let mut removal = Removal::default();
        for step in 0..31 {
            let seen = removal.look(&state(&json!({"core": removing(&step.to_string())})), at(step * 60));
            assert_eq!(seen.end.is_some(), step == 30, "{step}");
        }
    }

    #[test]
    fn an_operator_or_an_api_that_says_nothing_is_not_waited_for() {
        let not_seen = "generation\t2\nstatus\t{\"phase\":\"Ready\",\"observedGeneration\":1}\ntrouble\tErrImagePull: no\nend\n";
        for (state, expected) in
            [(State::default(), "60 s"), (State::parse(not_seen).unwrap(), "60 s: ErrImagePull: no")]
        {
            let mut removal = Removal::default();
            assert_eq!(removal.look(&state, at(59)).end, None);
            let why = removal.look(&state, at(60)).end.unwrap().unwrap_err();
            assert!(why.ends_with(expected), "{why}");
        }
    }

    #[test]
    fn what_the_api_says_instead_is_told() {
        let refusal = "Error from server (Forbidden): clusterconfigurations.installer.kubesphere.io \"ks-installer\" is forbidden";
        let state = State::parse(&format!("error\t{refusal}\nend\n")).unwrap();
        let mut removal = Removal::default();
        assert_eq!(removal.look(&state, at(59)).end, None);
        let why = removal.look(&state, at(60)).end.unwrap().unwrap_err();
        assert_eq!(why, format!("the API has only returned an error for 60 s: {refusal}"));
    }
}
