//! Pulls images through the runtime.

use kk_connector::quote;
use kk_engine::{Action, Apply, Change, Facts, Load, Script};

use crate::base::requirements::IMAGES;

/// The images of one host.
pub(super) struct Pull {
    images: Vec<String>,
}

impl Pull {
    /// Pulls these images, which are specified by their full names.
    pub(super) fn new(images: Vec<String>) -> Self {
        Self { images }
    }

    /// The images that the runtime of the host does not list.
    fn missing(&self, facts: &Facts) -> Vec<&str> {
        let there = facts.answer(&IMAGES).answered().unwrap_or_default();
        let is_there = |image: &str| there.iter().any(|listed| listed.name == image);
        self.images.iter().map(String::as_str).filter(|image| !is_there(image)).collect()
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
        let words: Vec<_> = self.missing(facts).into_iter().map(quote).collect();
        Apply::Script(Script::new(format!("set -- {}\n{}", words.join(" "), include_str!("pull.sh"))))
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
            "specify the registry's CA with certsPath in spec.registry.auths"
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
        facts.reply(&IMAGES, "a/b:1\nsha256:123\nc/d:2");
        assert_eq!(pull.check(&facts), Change::None);
        facts.reply(&IMAGES, "a/b:1 sha256:1\nsha256:123 sha256:1\n");
        assert_eq!(pull.check(&facts), Change::Needed(vec!["pull c/d:2".into()]));
    }

    #[test]
    fn a_missing_image_is_not_tried_again() {
        let pull = Pull::new(Vec::new());
        assert!(!pull.transient(1, "x:1: failed to resolve: x:1: not found"));
        assert!(pull.transient(1, "dial tcp: i/o timeout"));
    }
}
