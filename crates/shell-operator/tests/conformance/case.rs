//! The form of a case, and how its parts are run.

use std::path::PathBuf;

use serde::Deserialize;

use crate::{cluster, config, context, effects, hook, named, program, queue, schedule, webhook};

/// One behaviour.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Case {
    /// The behaviour, in a sentence.
    behaviour: String,
    /// The difference from the original, and its reason.
    #[serde(default)]
    differs: String,
    /// Why there is nothing to show.
    #[serde(default)]
    not_applicable: String,
    /// Tests in code that show it, as `path::function`.
    #[serde(default)]
    tests: Vec<String>,
    #[serde(default)]
    config: Vec<config::Config>,
    #[serde(default)]
    contexts: Vec<context::File>,
    #[serde(default)]
    jq: Vec<context::Jq>,
    #[serde(default)]
    queue: Vec<queue::Waiting>,
    #[serde(default)]
    parallel: Vec<queue::Parallel>,
    #[serde(default)]
    delay: Vec<queue::Delay>,
    #[serde(default)]
    discovery: Vec<hook::Discovery>,
    #[serde(default)]
    output: Vec<hook::Output>,
    #[serde(default)]
    limiter: Vec<hook::Limit>,
    #[serde(default)]
    safe_names: Vec<hook::SafeName>,
    #[serde(default)]
    patches: Vec<effects::Patches>,
    #[serde(default)]
    metrics: Vec<effects::Metrics>,
    #[serde(default)]
    conversion_paths: Vec<webhook::Paths>,
    #[serde(default)]
    source_versions: Vec<webhook::Sources>,
    #[serde(default)]
    conversion_responses: Vec<webhook::Converted>,
    #[serde(default)]
    admission_responses: Vec<webhook::Admission>,
    #[serde(default)]
    webhook_paths: Vec<webhook::PathOf>,
    #[serde(default)]
    timers: Vec<schedule::Timers>,
    #[serde(default)]
    program: Vec<program::Program>,
    #[serde(default)]
    cluster: Vec<cluster::Cluster>,
}

/// How a behaviour is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// By the data of its file.
    Run,
    /// By tests in code.
    Test,
    /// Not at all.
    NotApplicable,
}

/// All cases with their names, sorted.
pub(crate) fn load_all() -> Vec<(String, Case)> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/cases");
    let mut cases: Vec<(String, Case)> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().replace('-', "_");
            let text = std::fs::read_to_string(&path).unwrap();
            let case = serde_saphyr::from_str(&text);
            (name, case.unwrap_or_else(|error| panic!("{}: {error}", path.display())))
        })
        .collect();
    cases.sort_by(|(left, _), (right, _)| left.cmp(right));
    cases
}

/// Runs one part of a case after the other; the error names the part that failed.
fn each<T>(what: &str, parts: &[T], run: impl Fn(&T) -> Result<(), String>) -> Result<(), String> {
    for (position, part) in parts.iter().enumerate() {
        run(part).map_err(|why| format!("{what}[{position}]: {why}"))?;
    }
    Ok(())
}

impl Case {
    pub(crate) fn way(&self) -> Way {
        match (self.not_applicable.is_empty(), self.parts()) {
            (false, _) => Way::NotApplicable,
            (true, 0) => Way::Test,
            (true, _) => Way::Run,
        }
    }

    /// Number of parts that are data.
    fn parts(&self) -> usize {
        self.config.len()
            + self.contexts.len()
            + self.jq.len()
            + self.queue.len()
            + self.parallel.len()
            + self.delay.len()
            + self.discovery.len()
            + self.output.len()
            + self.limiter.len()
            + self.safe_names.len()
            + self.patches.len()
            + self.metrics.len()
            + self.conversion_paths.len()
            + self.source_versions.len()
            + self.conversion_responses.len()
            + self.admission_responses.len()
            + self.webhook_paths.len()
            + self.timers.len()
            + self.program.len()
            + self.cluster.len()
    }

    /// Runs all parts; the error describes the expected behaviour.
    pub(crate) fn run(&self) -> Result<(), String> {
        let differs = if self.differs.is_empty() { "" } else { "\nother than in the original: " };
        self.run_parts().map_err(|why| format!("{}{differs}{}\n{why}", self.behaviour, self.differs))
    }

    fn run_parts(&self) -> Result<(), String> {
        if self.behaviour.is_empty() || (self.parts() == 0 && self.tests.is_empty()) {
            return Err("a case has a behaviour, and something that shows it".to_owned());
        }
        each("tests", &self.tests, |test| named::check(test))?;
        each("config", &self.config, config::Config::run)?;
        each("contexts", &self.contexts, context::File::run)?;
        each("jq", &self.jq, context::Jq::run)?;
        each("queue", &self.queue, queue::Waiting::run)?;
        each("parallel", &self.parallel, queue::Parallel::run)?;
        each("delay", &self.delay, queue::Delay::run)?;
        each("discovery", &self.discovery, hook::Discovery::run)?;
        each("output", &self.output, hook::Output::run)?;
        each("limiter", &self.limiter, hook::Limit::run)?;
        each("safeNames", &self.safe_names, hook::SafeName::run)?;
        each("patches", &self.patches, effects::Patches::run)?;
        each("metrics", &self.metrics, effects::Metrics::run)?;
        each("conversionPaths", &self.conversion_paths, webhook::Paths::run)?;
        each("sourceVersions", &self.source_versions, webhook::Sources::run)?;
        each("conversionResponses", &self.conversion_responses, webhook::Converted::run)?;
        each("admissionResponses", &self.admission_responses, webhook::Admission::run)?;
        each("webhookPaths", &self.webhook_paths, webhook::PathOf::run)?;
        each("timers", &self.timers, schedule::Timers::run)?;
        each("program", &self.program, program::Program::run)?;
        each("cluster", &self.cluster, cluster::Cluster::run)
    }
}
