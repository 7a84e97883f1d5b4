//! Operations that a hook writes into `$METRICS_PATH`.

use serde::Deserialize;

use super::{Labels, Registry};

/// One line of the file, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// Name of the metric; empty only for a group that expires.
    pub name: String,
    /// The change.
    pub action: Action,
    /// Labels, without `hook`.
    pub labels: Labels,
    /// Group of the series.
    pub group: Option<String>,
}

/// The change of a metric.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Add to a counter.
    Add(f64),
    /// Set a gauge.
    Set(f64),
    /// Put a value into a histogram with these upper bounds.
    Observe(f64, Vec<f64>),
    /// Remove the group's series.
    Expire,
}

/// Every key may be missing or `null`: JSON libraries of hooks print an unset field in either way.
#[derive(Deserialize)]
struct Line {
    name: Option<String>,
    action: Option<String>,
    value: Option<f64>,
    buckets: Option<Vec<f64>>,
    labels: Option<Labels>,
    group: Option<String>,
    add: Option<f64>,
    set: Option<f64>,
}

/// Reads a stream of JSON objects. All operations that are wrong are reported together.
pub fn parse(text: &[u8]) -> Result<Vec<Operation>, String> {
    let mut operations = Vec::new();
    let mut problems = Vec::new();
    for (position, line) in serde_json::Deserializer::from_slice(text).into_iter::<Line>().enumerate() {
        let line = line.map_err(|error| format!("got bad metrics: operation {}: {error}", position + 1))?;
        match check(line) {
            Ok(operation) => operations.push(operation),
            Err(problem) => problems.push(format!("operation {}: {problem}", position + 1)),
        }
    }
    if problems.is_empty() {
        Ok(operations)
    } else {
        Err(format!("got bad metrics: {}", problems.join("; ")))
    }
}

fn check(line: Line) -> Result<Operation, String> {
    let name = line.name.unwrap_or_default();
    let labels = line.labels.unwrap_or_default();
    let group = line.group.filter(|group| !group.is_empty());
    let shown = if name.is_empty() { "without name".to_owned() } else { format!("'{name}'") };
    let value = line.value.ok_or_else(|| format!("metric {shown} needs a 'value'"));
    let action = match (line.action.as_deref(), line.add, line.set) {
        (_, Some(_), Some(_)) => return Err(format!("metric {shown} has both 'add' and 'set'")),
        (_, Some(value), None) => Action::Add(value),
        (_, None, Some(value)) => Action::Set(value),
        (Some("add"), ..) => Action::Add(value?),
        (Some("set"), ..) => Action::Set(value?),
        (Some("observe"), ..) => {
            let buckets = line.buckets.filter(|buckets| !buckets.is_empty());
            let buckets = buckets.ok_or_else(|| format!("metric {shown} needs 'buckets' for 'observe'"))?;
            Action::Observe(value?, buckets)
        }
        (Some("expire"), ..) if group.is_none() => {
            return Err(format!("metric {shown}: 'expire' needs a 'group'"));
        }
        (Some("expire"), ..) => Action::Expire,
        (Some(other), ..) => {
            return Err(format!(
                "metric {shown}: unknown action '{other}'; known are add, set, observe, expire"
            ));
        }
        (None, None, None) => return Err(format!("metric {shown} needs an 'action', 'add' or 'set'")),
    };
    if action != Action::Expire {
        check_names(&name, &labels, matches!(action, Action::Observe(..)))?;
    }
    if matches!(action, Action::Add(value) if value < 0.0) {
        return Err(format!("metric {shown}: a counter cannot go down; use 'set' for a value that can"));
    }
    Ok(Operation { name, action, labels, group })
}

/// One wrong name would make the whole page unreadable for Prometheus.
fn check_names(name: &str, labels: &Labels, histogram: bool) -> Result<(), String> {
    let fits = |text: &str, more: &str| {
        !text.starts_with(|c: char| c.is_ascii_digit())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
    };
    if name.is_empty() {
        return Err("'name' is required".to_owned());
    }
    if !fits(name, "_:") {
        return Err(format!("'{name}' is not a metric's name: letters, digits, '_' and ':' are"));
    }
    let wrong = |label: &&String| label.is_empty() || !fits(label, "_") || (histogram && *label == "le");
    match labels.keys().find(wrong) {
        None => Ok(()),
        Some(label) if label == "le" => {
            Err(format!("metric '{name}': the label 'le' of a histogram is made from its buckets"))
        }
        Some(label) => {
            Err(format!("metric '{name}': '{label}' is not a label's name: letters, digits and '_' are"))
        }
    }
}

/// Applies the operations of one run of `hook`. Returns contradictions to existing metrics.
///
/// Series of the groups that occur are removed first, so that a group always shows the last report. Series
/// without a group stay until the operator ends.
pub fn apply(registry: &Registry, hook: &str, operations: &[Operation]) -> Vec<String> {
    let mut groups: Vec<&str> =
        operations.iter().filter_map(|operation| operation.group.as_deref()).collect();
    groups.sort_unstable();
    groups.dedup();
    for group in groups {
        registry.expire(group);
    }
    let mut problems = Vec::new();
    for operation in operations {
        let mut labels = operation.labels.clone();
        labels.insert("hook".to_owned(), hook.to_owned());
        let (name, group) = (operation.name.as_str(), operation.group.as_deref());
        let result = match &operation.action {
            Action::Add(value) => registry.add(name, labels, group, *value),
            Action::Set(value) => registry.set(name, labels, group, *value),
            Action::Observe(value, buckets) => registry.observe(name, labels, group, *value, buckets),
            Action::Expire => {
                registry.expire(group.unwrap_or_default());
                Ok(())
            }
        };
        problems.extend(result.err().map(|error| error.to_string()));
    }
    problems
}
