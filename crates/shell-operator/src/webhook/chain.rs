//! Finds the steps from one version of a custom resource to another.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::config::ConversionRule;

/// All conversions that hooks offer, by the name of the custom resource's definition.
#[derive(Debug, Default)]
pub struct Conversions(BTreeMap<String, Vec<Step>>);

/// One conversion by one binding of a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The hook.
    pub hook: Arc<str>,
    /// Position of the binding among the hook's conversions.
    pub binding: usize,
    /// From where to where.
    pub rule: ConversionRule,
}

impl Conversions {
    /// Adds what a binding can do for a custom resource.
    pub fn add(&mut self, crd: &str, step: Step) {
        self.0.entry(crd.to_owned()).or_default().push(step);
    }

    /// Names of the definitions, sorted.
    pub fn crds(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }

    /// The fewest steps from one version to another. Of steps that do the same, the more exactly named one is used. `None` if
    /// there are no such steps.
    pub fn path(&self, crd: &str, from: &str, to: &str) -> Option<Vec<&Step>> {
        let steps = self.0.get(crd)?;
        let mut paths: VecDeque<(&str, Vec<&Step>)> = VecDeque::from([(from, Vec::new())]);
        let mut seen: Vec<&str> = vec![from];
        while let Some((version, path)) = paths.pop_front() {
            let mut next: Vec<&Step> = steps.iter().filter(|step| same(&step.rule.from, version)).collect();
            next.sort_by_key(|step| (step.rule.to != to, step.rule.from != version));
            for step in next {
                let target = step.rule.to.as_str();
                let longer = || path.iter().copied().chain([step]).collect::<Vec<_>>();
                if same(target, to) {
                    return Some(longer());
                }
                if !seen.iter().any(|known| same(known, target)) {
                    seen.push(target);
                    paths.push_back((target, longer()));
                }
            }
        }
        None
    }
}

/// Whether two versions are the same: `v1` stands for `group/v1` of any group, but groups differ.
fn same(left: &str, right: &str) -> bool {
    match (left.split_once('/'), right.split_once('/')) {
        (None, Some((_, version))) => left == version,
        (Some((_, version)), None) => version == right,
        _ => left == right,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversions(rules: &[&str]) -> Conversions {
        let mut conversions = Conversions::default();
        for rule in rules {
            let (from, to) = rule.split_once('>').unwrap();
            let rule = ConversionRule { from: from.to_owned(), to: to.to_owned() };
            conversions.add("crd", Step { hook: "h".into(), binding: 0, rule });
        }
        conversions
    }

    const GREEK: &[&str] =
        &["alpha>beta", "beta>gamma", "gamma>delta", "delta>gamma", "gamma>beta", "beta>alpha"];
    const GROUPS: &[&str] = &["a.com/v1beta1>a.io/v1beta1", "v1alpha1>v1beta1", "v1beta1>v1"];

    #[test]
    fn paths() {
        for (case, rules, from, to, expected) in [
            ("up", GREEK, "alpha", "delta", Some("alpha>beta beta>gamma gamma>delta")),
            ("down", GREEK, "delta", "alpha", Some("delta>gamma gamma>beta beta>alpha")),
            ("part", GREEK, "beta", "delta", Some("beta>gamma gamma>delta")),
            ("unknown_target", GREEK, "alpha", "omega", None),
            ("unknown_source", GREEK, "omega", "alpha", None),
            ("full_names", GROUPS, "g/v1alpha1", "g/v1", Some("v1alpha1>v1beta1 v1beta1>v1")),
            ("between_groups", GROUPS, "a.com/v1beta1", "a.io/v1beta1", Some("a.com/v1beta1>a.io/v1beta1")),
            ("other_group", &["a/v1>a/v2"][..], "b/v1", "b/v2", None),
            ("no_substrings", &["v1>v2"][..], "v1beta1", "v2", None),
        ] {
            let conversions = conversions(rules);
            let path = conversions.path("crd", from, to);
            let show = |steps: Vec<&Step>| {
                let steps = steps.iter().map(|step| format!("{}>{}", step.rule.from, step.rule.to));
                steps.collect::<Vec<_>>().join(" ")
            };
            assert_eq!(path.map(show).as_deref(), expected, "{case}");
            assert_eq!(conversions.path("other", from, to), None, "{case}");
        }
    }
}
