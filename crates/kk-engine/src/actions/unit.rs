//! A systemd unit: enabled, started, and running with the configuration that is on disk.

use kk_connector::quote;

use super::{hints::Hints, lines};
use crate::{Action, Apply, Change, Facts, ProbeSpec, Script, UnitFact};

/// The wanted state of a systemd unit. systemd is told to read unit files again when it has to.
#[derive(Clone)]
pub struct Unit {
    name: String,
    enabled: Option<bool>,
    started: Option<bool>,
    restart_after: Vec<String>,
    force_restart: bool,
    reload: bool,
    no_block: bool,
    hints: Hints,
}

impl Unit {
    /// A unit whose state is as it may be; say more with the other methods. The name has its suffix: `etcd.service`.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            enabled: None,
            started: None,
            restart_after: Vec::new(),
            force_restart: false,
            reload: false,
            no_block: false,
            hints: Hints::default(),
        }
    }

    /// Enabled and started.
    pub fn running(name: impl Into<String>) -> Self {
        Self { enabled: Some(true), started: Some(true), ..Self::new(name) }
    }

    /// Started only: it is enabled by something else, or not at all.
    pub fn started(name: impl Into<String>) -> Self {
        Self { started: Some(true), ..Self::new(name) }
    }

    /// Disabled and stopped; a delete puts back what was.
    pub fn stopped(name: impl Into<String>) -> Self {
        Self { enabled: Some(false), started: Some(false), ..Self::new(name) }
    }

    /// Enabled only: something else starts it.
    pub fn enabled(name: impl Into<String>) -> Self {
        Self { enabled: Some(true), ..Self::new(name) }
    }

    /// Restarts a running unit when one of these files was written after it became active. That finds also the
    /// restart that an earlier run did not come to.
    #[must_use]
    pub fn restart_after<P: Into<String>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.restart_after.extend(paths.into_iter().map(Into::into));
        self
    }

    /// Restarts a running unit: for when this plan changes one of its files. See [`super::any_needed`]. One that does not run at
    /// the probe is restarted too, because another task may start it before the files change.
    #[must_use]
    pub fn force_restart(mut self, force: bool) -> Self {
        self.force_restart = force;
        self
    }

    /// Reloads where it would restart.
    #[must_use]
    pub fn reload(mut self) -> Self {
        self.reload = true;
        self
    }

    /// Does not wait until the unit says that it is ready; a later task waits for what it needs.
    #[must_use]
    pub fn no_block(mut self) -> Self {
        self.no_block = true;
        self
    }

    /// Says what to do when the unit fails with words that contain `text`.
    #[must_use]
    pub fn hint(mut self, text: impl Into<String>, hint: impl Into<String>) -> Self {
        self.hints.add(text, hint);
        self
    }

    /// Whether the unit runs, and is to start again.
    pub fn restarts(&self, facts: &Facts) -> bool {
        facts.units.get(&self.name).is_some_and(|unit| self.verb(unit, facts) == Some("restart"))
    }

    /// The verb of `systemctl` that brings a unit from this state into the wanted one.
    fn verb(&self, unit: &UnitFact, facts: &Facts) -> Option<&'static str> {
        let since = if self.reload { unit.changed_since_ms } else { unit.active_since_ms };
        let newer = |path: &String| facts.files.get(path).is_some_and(|file| file.written_ms > since);
        match self.started {
            Some(true) if !unit.active => Some("start"),
            Some(false) if unit.active => Some("stop"),
            Some(true) if self.force_restart || self.restart_after.iter().any(newer) => {
                Some(if self.reload { "reload" } else { "restart" })
            }
            _ => None,
        }
    }

    /// The part of the change that enables or disables.
    fn enabling(&self, unit: &UnitFact) -> Option<&'static str> {
        match self.enabled {
            Some(true) if !unit.enabled => Some("enable"),
            Some(false) if unit.enabled => Some("disable"),
            _ => None,
        }
    }
}

impl Action for Unit {
    fn check(&self, facts: &Facts) -> Change {
        let unit = facts.units.get(&self.name).cloned().unwrap_or_default();
        let mut changes: Vec<String> = Vec::new();
        changes.extend(self.enabling(&unit).map(|verb| format!("{verb} {}", self.name)));
        changes.extend(self.verb(&unit, facts).map(|verb| format!("{verb} {}", self.name)));
        if changes.is_empty() && unit.stale {
            changes.push(format!("make systemd reload {}", self.name));
        }
        lines(changes)
    }

    fn apply(&self, facts: &Facts) -> Apply {
        let unit = facts.units.get(&self.name).cloned().unwrap_or_default();
        let enabled = match self.enabling(&unit) {
            Some("enable") => "yes",
            Some(_) => "no",
            None => "keep",
        };
        let verb = match self.verb(&unit, facts) {
            // `kubeadm init` starts the kubelet, for example.
            Some("start") if self.force_restart => "restart",
            verb => verb.unwrap_or("keep"),
        };
        let block = if self.no_block { " --no-block" } else { "" };
        Apply::Script(Script::new(format!("kk_unit {} {enabled} {verb}{block}\n", quote(&self.name))))
    }

    fn asks(&self, spec: &mut ProbeSpec) {
        spec.units.insert(self.name.clone());
        spec.files.extend(self.restart_after.iter().cloned());
    }

    fn hint(&self, stderr: &str) -> Option<String> {
        self.hints.find(stderr).or_else(|| Some(format!("see \"journalctl -u {}\" on the host", self.name)))
    }
}
