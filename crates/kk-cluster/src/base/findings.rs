//! Findings, which kk reports before the first change, and settings that a running cluster cannot change.

use std::collections::BTreeSet;

use kk_config::Host;
use kk_engine::{Answer, Finding, Severity};

/// Collects findings. `host` is `None` for findings about the cluster.
#[derive(Default)]
pub(crate) struct Findings(pub Vec<Finding>);

impl Findings {
    fn add<'a>(
        &mut self,
        severity: Severity,
        host: impl Into<Option<&'a Host>>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let host = host.into().map(|host| host.name.clone());
        self.0.push(Finding { severity, host, message: message.into(), hint: hint.into() });
    }

    /// Adds an error: kk changes nothing.
    pub(crate) fn error<'a>(
        &mut self,
        host: impl Into<Option<&'a Host>>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.add(Severity::Error, host, message, hint);
    }

    /// Adds a warning: something may go wrong.
    pub(crate) fn warning<'a>(
        &mut self,
        host: impl Into<Option<&'a Host>>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.add(Severity::Warning, host, message, hint);
    }

    /// Adds an error for a question without an answer: no conclusion is possible, so kk changes nothing. `what` completes "the
    /// host did not report …".
    pub(crate) fn unanswered<T>(&mut self, host: &Host, answer: &Answer<T>, what: &str) {
        if let Some(why) = answer.unanswered() {
            self.error(
                host,
                format!("the host did not report {what}: {why}"),
                "run again; if the problem remains, check the load and the disk of the host",
            );
        }
    }

    /// Adds an adaptation: kk itself sets what is needed.
    pub(crate) fn adapted<'a>(
        &mut self,
        host: impl Into<Option<&'a Host>>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.add(Severity::Adapted, host, message, hint);
    }
}

/// A setting that a running cluster cannot change.
pub(crate) struct Setting {
    /// The host that has it; `None` for a setting of the cluster.
    pub host: Option<String>,
    /// The start of a sentence about the cluster: "pods are in".
    pub what: &'static str,
    /// The field of the file.
    pub field: &'static str,
    /// The current values, separated by commas. `None` if there is no cluster.
    pub there: Option<String>,
    /// The values in the file.
    pub wanted: String,
}

impl Setting {
    /// The error for a file that changes it.
    pub(crate) fn finding(self) -> Option<Finding> {
        let there = self.there.filter(|there| values(there) != values(&self.wanted))?;
        let owner = if self.host.is_some() { "its" } else { "the cluster's" };
        Some(Finding {
            severity: Severity::Error,
            host: self.host,
            message: format!("{owner} {} {there}, but the file sets {}", self.what, self.wanted),
            hint: format!(
                "revert {}: it cannot change in a running cluster; or delete the cluster first and create \
                 it again",
                self.field
            ),
        })
    }
}

/// The values of a list. Their order is irrelevant.
fn values(list: &str) -> BTreeSet<&str> {
    list.split(',').map(|value| value.trim().trim_matches('"')).collect()
}
