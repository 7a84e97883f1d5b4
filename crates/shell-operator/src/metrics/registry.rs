//! Metric families by name, and their text.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::json::write_f64;

/// Label names and values.
pub type Labels = BTreeMap<String, String>;

/// Metric families. Shared by reference; updates are short and take a lock.
#[derive(Debug, Default)]
pub struct Registry(Mutex<BTreeMap<String, Family>>);

#[derive(Debug)]
struct Family {
    kind: Kind,
    help: Option<&'static str>,
    series: BTreeMap<Labels, Series>,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Counter,
    Gauge,
    Histogram(Vec<f64>),
}

#[derive(Debug)]
struct Series {
    group: Option<String>,
    value: Value,
}

#[derive(Debug)]
enum Value {
    Number(f64),
    Histogram(Histogram),
}

/// A single histogram, for values that are observed so often that a search by labels would cost too much each time. All clones
/// are the same one.
#[derive(Clone, Debug, Default)]
pub struct Histogram(Arc<Mutex<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    /// Upper bound of each bucket, and how many values are not above it.
    buckets: Vec<(f64, u64)>,
    sum: f64,
    count: u64,
}

impl Histogram {
    fn new(bounds: &[f64]) -> Self {
        let buckets = bounds.iter().map(|bound| (*bound, 0)).collect();
        Self(Arc::new(Mutex::new(Counts { buckets, ..Counts::default() })))
    }

    /// Puts a value into it.
    pub fn observe(&self, value: f64) {
        let mut counts = self.lock();
        for (_, count) in counts.buckets.iter_mut().filter(|(bound, _)| value <= *bound) {
            *count += 1;
        }
        counts.sum += value;
        counts.count += 1;
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A metric that contradicts the existing metric of the same name.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the metric '{name}' is a {known} already, it cannot be a {wanted} as well")]
pub struct RegistryError {
    name: String,
    known: &'static str,
    wanted: &'static str,
}

impl Kind {
    fn name(&self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram(_) => "histogram",
        }
    }
}

impl Registry {
    /// Sets the description of a metric; shown as `# HELP`.
    pub fn describe(&self, name: &str, help: &'static str) {
        if let Some(family) = self.lock().get_mut(name) {
            family.help = Some(help);
        }
    }

    /// Adds `value` to a counter.
    pub fn add(
        &self,
        name: &str,
        labels: Labels,
        group: Option<&str>,
        value: f64,
    ) -> Result<(), RegistryError> {
        self.update(name, &Kind::Counter, labels, group, |series| {
            if let Value::Number(number) = series {
                *number += value;
            }
        })
    }

    /// Sets a gauge.
    pub fn set(
        &self,
        name: &str,
        labels: Labels,
        group: Option<&str>,
        value: f64,
    ) -> Result<(), RegistryError> {
        self.update(name, &Kind::Gauge, labels, group, |series| *series = Value::Number(value))
    }

    /// Puts `value` into a histogram with these upper bounds. The first bounds that a name is used with stay.
    pub fn observe(
        &self,
        name: &str,
        labels: Labels,
        group: Option<&str>,
        value: f64,
        buckets: &[f64],
    ) -> Result<(), RegistryError> {
        self.histogram(name, labels, group, buckets).map(|histogram| histogram.observe(value))
    }

    /// The histogram with this name and these labels, which is created if it does not exist.
    pub fn histogram(
        &self,
        name: &str,
        labels: Labels,
        group: Option<&str>,
        buckets: &[f64],
    ) -> Result<Histogram, RegistryError> {
        let mut families = self.lock();
        let kind = if let Some(Family { kind: known @ Kind::Histogram(_), .. }) = families.get(name) {
            known.clone()
        } else {
            let mut bounds = buckets.to_vec();
            bounds.sort_unstable_by(f64::total_cmp);
            Kind::Histogram(bounds)
        };
        let mut found = Histogram::default();
        update(&mut families, name, &kind, labels, group, |series| {
            if let Value::Histogram(histogram) = series {
                found = histogram.clone();
            }
        })?;
        Ok(found)
    }

    /// Removes every series of `group`.
    pub fn expire(&self, group: &str) {
        self.remove(|_, _, of| of == Some(group));
    }

    /// Removes the series of gauges with this label value.
    pub fn remove_gauges(&self, label: &str, value: &str) {
        self.remove(|kind, labels, _| {
            *kind == Kind::Gauge && labels.get(label).is_some_and(|known| known == value)
        });
    }

    fn remove(&self, remove: impl Fn(&Kind, &Labels, Option<&str>) -> bool) {
        self.lock().retain(|_, family| {
            let kind = &family.kind;
            family.series.retain(|labels, series| !remove(kind, labels, series.group.as_deref()));
            !family.series.is_empty()
        });
    }

    /// All metrics in the Prometheus text format, sorted.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for (name, family) in &*self.lock() {
            if let Some(help) = family.help {
                let _ = writeln!(out, "# HELP {name} {help}");
            }
            let _ = writeln!(out, "# TYPE {name} {}", family.kind.name());
            for (labels, series) in &family.series {
                write_series(&mut out, name, labels, &series.value);
            }
        }
        out
    }

    fn update(
        &self,
        name: &str,
        kind: &Kind,
        labels: Labels,
        group: Option<&str>,
        change: impl FnOnce(&mut Value),
    ) -> Result<(), RegistryError> {
        update(&mut self.lock(), name, kind, labels, group, change)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Family>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn update(
    families: &mut BTreeMap<String, Family>,
    name: &str,
    kind: &Kind,
    labels: Labels,
    group: Option<&str>,
    change: impl FnOnce(&mut Value),
) -> Result<(), RegistryError> {
    let empty = match kind {
        Kind::Histogram(bounds) => Value::Histogram(Histogram::new(bounds)),
        _ => Value::Number(0.0),
    };
    if !families.contains_key(name) {
        families.insert(name.to_owned(), Family { kind: kind.clone(), help: None, series: BTreeMap::new() });
    }
    let family = families.get_mut(name).expect("it was just inserted");
    if family.kind != *kind {
        let (known, wanted) = (family.kind.name(), kind.name());
        return Err(RegistryError { name: name.to_owned(), known, wanted });
    }
    let series = family.series.entry(labels).or_insert(Series { group: None, value: empty });
    series.group = group.map(str::to_owned);
    change(&mut series.value);
    Ok(())
}

fn write_series(out: &mut String, name: &str, labels: &Labels, value: &Value) {
    match value {
        Value::Number(number) => {
            let _ = writeln!(out, "{name}{} {}", label_text(labels, None), number_text(*number));
        }
        Value::Histogram(histogram) => {
            let Counts { buckets, sum, count } = &*histogram.lock();
            for (bound, bucket) in buckets {
                let labels = label_text(labels, Some(&number_text(*bound)));
                let _ = writeln!(out, "{name}_bucket{labels} {bucket}");
            }
            let _ = writeln!(out, "{name}_bucket{} {count}", label_text(labels, Some("+Inf")));
            let _ = writeln!(out, "{name}_sum{} {}", label_text(labels, None), number_text(*sum));
            let _ = writeln!(out, "{name}_count{} {count}", label_text(labels, None));
        }
    }
}

fn label_text(labels: &Labels, bound: Option<&str>) -> String {
    let mut parts: Vec<String> =
        labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escape(value))).collect();
    parts.extend(bound.map(|bound| format!("le=\"{bound}\"")));
    if parts.is_empty() { String::new() } else { format!("{{{}}}", parts.join(",")) }
}

fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn number_text(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let mut out = Vec::new();
    write_f64(&mut out, number);
    String::from_utf8(out).expect("digits are ASCII")
}
