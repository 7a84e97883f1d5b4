//! Metric families by name, and their text.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

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
    Histogram { counts: Vec<u64>, sum: f64, count: u64 },
}

/// A metric that contradicts what is known by its name.
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
    /// Says what a metric means; shown as `# HELP`.
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
        let mut bounds = buckets.to_vec();
        bounds.sort_unstable_by(f64::total_cmp);
        let mut families = self.lock();
        if let Some(Kind::Histogram(known)) = families.get(name).map(|family| &family.kind) {
            bounds.clone_from(known);
        }
        update(&mut families, name, &Kind::Histogram(bounds.clone()), labels, group, |series| {
            if let Value::Histogram { counts, sum, count } = series {
                for (bucket, _) in counts.iter_mut().zip(&bounds).filter(|(_, bound)| value <= **bound) {
                    *bucket += 1;
                }
                *sum += value;
                *count += 1;
            }
        })
    }

    /// Removes every series of `group`.
    pub fn expire(&self, group: &str) {
        self.remove(|_, _, of| of == Some(group));
    }

    /// Removes the series with this name and label value.
    pub fn remove_series(&self, name: &str, label: &str, value: &str) {
        self.remove(|of, labels, _| of == name && labels.get(label).is_some_and(|known| known == value));
    }

    fn remove(&self, remove: impl Fn(&str, &Labels, Option<&str>) -> bool) {
        self.lock().retain(|name, family| {
            family.series.retain(|labels, series| !remove(name, labels, series.group.as_deref()));
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
                write_series(&mut out, name, labels, &series.value, &family.kind);
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
        Kind::Histogram(bounds) => Value::Histogram { counts: vec![0; bounds.len()], sum: 0.0, count: 0 },
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

fn write_series(out: &mut String, name: &str, labels: &Labels, value: &Value, kind: &Kind) {
    match (value, kind) {
        (Value::Number(number), _) => {
            let _ = writeln!(out, "{name}{} {}", label_text(labels, None), number_text(*number));
        }
        (Value::Histogram { counts, sum, count }, Kind::Histogram(bounds)) => {
            for (bucket, bound) in counts.iter().zip(bounds) {
                let labels = label_text(labels, Some(&number_text(*bound)));
                let _ = writeln!(out, "{name}_bucket{labels} {bucket}");
            }
            let _ = writeln!(out, "{name}_bucket{} {count}", label_text(labels, Some("+Inf")));
            let _ = writeln!(out, "{name}_sum{} {}", label_text(labels, None), number_text(*sum));
            let _ = writeln!(out, "{name}_count{} {count}", label_text(labels, None));
        }
        (Value::Histogram { .. }, _) => {}
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
