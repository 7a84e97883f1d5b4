//! The action that pulls images through the runtime.

use kk_connector::quote;
use kk_engine::{Action, Apply, Change, Facts, Load, Script};

/// Images of one host.
pub(super) struct Pull {
    images: Vec<String>,
}

impl Pull {
    /// These images, by their full names.
    pub(super) fn new(images: Vec<String>) -> Self {
        Self { images }
    }

    fn missing(&self, facts: &Facts) -> Vec<&str> {
        let there: Vec<&str> =
            facts.values.get("images").map(|list| list.lines().collect()).unwrap_or_default();
        self.images.iter().map(String::as_str).filter(|image| !there.contains(image)).collect()
    }
}

impl Action for Pull {
    fn check(&self, facts: &Facts) -> Change {
        let missing = self.missing(facts);
        if missing.is_empty() {
            return Change::None;
        }
        Change::Needed(missing.iter().map(|image| format!("pull {image}")).collect())
    }

    fn apply(&self, facts: &Facts) -> Apply {
        // All at once: one slow image must not hold up the others.
        let words: Vec<_> = self.missing(facts).into_iter().map(quote).collect();
        Apply::Script(Script::new(format!(
            "set -- {}\nn=0\nfor image; do\n    n=$((n + 1))\n    crictl --timeout 30m pull \"$image\" >pull.$n 2>&1 &\n    echo $! >pid.$n\ndone\n\
             n=0 failed=\nfor image; do\n    n=$((n + 1))\n    wait \"$(cat pid.$n)\" || {{ failed=1; echo \"$image: $(tail -n 3 pull.$n)\" >&2; }}\ndone\n[ -z \"$failed\" ]\n",
            words.join(" ")
        )))
    }

    fn load(&self) -> Load {
        Load::Pull
    }

    fn transient(&self, _code: i32, stderr: &str) -> bool {
        let lasting = ["not found", "unauthorized", "denied", "certificate", "no basic auth"];
        !lasting.iter().any(|word| stderr.contains(word))
    }

    fn hint(&self, stderr: &str) -> Option<String> {
        let hint = if stderr.contains("not found") {
            "the registry or mirror lacks this image: push it there, or correct spec.registry"
        } else if stderr.contains("unauthorized") || stderr.contains("denied") {
            "check user name and password in spec.registry.auths"
        } else if stderr.contains("certificate") {
            "give the registry's CA with certsPath in spec.registry.auths"
        } else {
            "the host must reach the registry: check its network, or set a mirror in spec.registry"
        };
        Some(hint.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asks_only_for_what_is_missing() {
        let pull = Pull::new(vec!["a/b:1".into(), "c/d:2".into()]);
        let mut facts = Facts::default();
        assert_eq!(pull.check(&facts), Change::Needed(vec!["pull a/b:1".into(), "pull c/d:2".into()]));
        facts.values.insert("images".into(), "a/b:1\nsha256:123\nc/d:2".into());
        assert_eq!(pull.check(&facts), Change::None);
    }

    #[test]
    fn a_missing_image_is_not_asked_for_again() {
        let pull = Pull::new(Vec::new());
        assert!(!pull.transient(1, "x:1: failed to resolve: x:1: not found"));
        assert!(pull.transient(1, "dial tcp: i/o timeout"));
    }
}
