//! Install an addon.

use std::time::Duration;

use kk_engine::{
    Action, Facts, HostWork, Retry, Task,
    actions::{Command, File},
};

use super::state;
use crate::{
    base::{
        host_layout::{KUBECTL, NOTES},
        requirements::Workload,
        shell::script,
        slots,
        supply::Wanted,
    },
    model::inputs::Inputs,
};

/// Helm waits up to five minutes for the objects of a chart, and for each of its hooks.
const LIMIT: Duration = Duration::from_mins(20);

/// Installs an addon in the lane of the control plane, once the cluster works.
pub(super) fn task(inputs: &Inputs, wanted: &Wanted) -> Task {
    with(inputs, wanted, Vec::new(), HostWork::default().needs(slots::manifests_applied_slot()))
}

/// The task that makes these changes before it installs the addon, and has the slots of `work`.
pub(super) fn with(inputs: &Inputs, wanted: &Wanted, before: Vec<Box<dyn Action>>, work: HostWork) -> Task {
    let name = &wanted.addon.name;
    let retry = match wanted.addon.retries {
        0 => Retry::times(3),
        retries => Retry {
            attempts: retries.saturating_add(1),
            delay: wanted.addon.delay,
            longest: wanted.addon.delay,
        },
    };
    let task =
        Task::new(format!("install_addon_{name}"), format!("Install {name}")).timeout(LIMIT).retry(retry);
    let Some(facts) = inputs.facts(inputs.api_host) else { return task };
    let mut actions = before;
    if is_needed(inputs, wanted, facts) {
        actions.push(Box::new(install(wanted)));
        // The note is last: it means that the addon is installed.
        actions.push(Box::new(note(wanted)));
    }
    let mut work = HostWork { actions, ..work }.needs(slots::node_tools_slot(&inputs.api_host.name));
    if inputs.options.bundle.is_some() && !inputs.options.skip_pull_images {
        for (host, _) in inputs.nodes() {
            work = work.after(slots::own_images_slot(&host.name));
        }
    }
    task.on(&inputs.api_host.name, work)
}

/// The note of the addon as it was last installed.
fn note(wanted: &Wanted) -> File {
    File::text(note_path(wanted), wanted.note()).mode(0o600)
}

fn note_path(wanted: &Wanted) -> String {
    format!("{NOTES}/addon-{}", wanted.addon.name)
}

/// Whether the addon is not installed yet, has changed in the file since, or is no longer there as it was installed. Any control
/// plane may have installed it. If the API does not respond, installed addons are assumed to be still there.
pub(super) fn is_needed(inputs: &Inputs, wanted: &Wanted, facts: &Facts) -> bool {
    if state::of(inputs).is_none() {
        let path = note_path(wanted);
        // The version in the note is not known, either.
        return if wanted.open_chart().is_some() {
            !facts.files.contains_key(&path)
        } else {
            note(wanted).check(facts).is_needed()
        };
    }
    let text = wanted.note();
    lacks_workload(inputs, wanted)
        || !state::of_all(inputs).iter().any(|(_, state)| state.has(&wanted.addon, &text))
}

/// Whether the network plugin lost one of its workloads: helm does not notice that.
fn lacks_workload(inputs: &Inputs, wanted: &Wanted) -> bool {
    let is_there = |Workload { namespace, path, .. }: &Workload| {
        let name = path.split_once('/').map_or(*path, |(_, name)| name);
        inputs.state.workloads.contains_key(&format!("{namespace}/{name}"))
    };
    inputs.state.answered && !wanted.plugin.unwrap_or_default().iter().all(is_there)
}

/// Passes values, the chart and manifests as files next to the script, because they may contain secrets. They are removed with
/// the script.
fn install(wanted: &Wanted) -> Command {
    let addon = &wanted.addon;
    let files: Vec<String> = (0..wanted.manifests.len()).map(|number| format!("{number}.yaml")).collect();
    let waits = addon.chart.as_ref().is_some_and(|chart| chart.wait);
    let (namespace, manifests) = (addon.namespace(), files.join(" "));
    let variables = [
        ("name", addon.name.as_str()),
        ("namespace", namespace),
        ("chart", if addon.chart.is_some() { "chart.tgz" } else { "" }),
        ("wait", if waits { "yes" } else { "" }),
        ("manifests", manifests.as_str()),
        ("complete", if wanted.is_here() { "yes" } else { "" }),
        ("notes", NOTES),
        ("template", state::OBJECTS),
    ];
    let text = KUBECTL.to_owned() + &script(&variables, include_str!("install.sh"));
    let mut command = Command::new(describe(wanted), text);
    if let Some(content) = wanted.chart.as_ref().and_then(|part| part.content.as_ref()) {
        command = command.file("chart.tgz", content.0.clone());
    }
    if let Some(values) = &wanted.values {
        command = command.file("values.yaml", values.clone());
    }
    if let Some(values) = addon.chart.as_ref().and_then(|chart| chart.values.as_ref()) {
        command = command.file("single.json", values.expose().as_bytes());
    }
    for (name, part) in files.into_iter().zip(&wanted.manifests) {
        if let Some(content) = &part.content {
            command = command.file(name, content.0.clone());
        }
    }
    let command = match addon.retries {
        0 => command.transient_on("connection refused").transient_on("no matches for kind"),
        // Every error message contains the empty text.
        _ => command.transient_on(""),
    };
    let pods = format!("check its pods: kubectl -n {namespace} get pods,events");
    command
        .hint(
            "another operation (install/upgrade/rollback) is in progress",
            format!(
                "another helm process is working on it, or was killed: check `helm -n {namespace} \
                     history {}`, and roll back",
                addon.name
            ),
        )
        .hint("deadline exceeded", pods.clone())
        .hint("timed out waiting", pods)
        .hint("values don't meet the specifications", "correct its values in the file")
        .hint(
            "no matches for kind",
            "its objects need a CustomResourceDefinition: list the addon that \
               contains it before this one",
        )
}

/// The text that the dry run prints.
fn describe(wanted: &Wanted) -> String {
    let namespace = wanted.addon.namespace();
    let chart = wanted.chart.iter().map(|part| format!("install {} into {namespace}", part.source));
    let manifests = wanted.manifests.iter().map(|part| format!("apply {}", part.source));
    let parts: Vec<String> = chart.chain(manifests).collect();
    parts.join(", ")
}
