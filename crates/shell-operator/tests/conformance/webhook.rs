//! Answers to the API server.

use serde::Deserialize;
use serde_json::Value;
use shell_operator::config::ConversionRule;
use shell_operator::webhook::admission::{Response, Review};
use shell_operator::webhook::conversion::{Object, parse_response, source_versions};
use shell_operator::webhook::{Conversions, Step, path_of};

use crate::value::{expect, refused, same};

/// Conversions that hooks offer, and ways from version to version.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Paths {
    /// `from>to` of each for the definition `things.example.com`.
    rules: Vec<String>,
    paths: Vec<PathCase>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PathCase {
    #[serde(default = "things")]
    crd: String,
    from: String,
    to: String,
    /// The steps; none means that there is no way.
    steps: Option<Vec<String>>,
}

fn things() -> String {
    "things.example.com".to_owned()
}

impl Paths {
    pub(crate) fn run(&self) -> Result<(), String> {
        let mut conversions = Conversions::default();
        for rule in &self.rules {
            let (from, to) = rule.split_once('>').ok_or("a rule is from>to")?;
            let rule = ConversionRule { from: from.to_owned(), to: to.to_owned() };
            conversions.add(&things(), Step { hook: "h".into(), binding: 0, rule });
        }
        for PathCase { crd, from, to, steps } in &self.paths {
            let found = conversions.path(crd, from, to).map(|path| {
                let step = |step: &&Step| format!("{}>{}", step.rule.from, step.rule.to);
                path.iter().map(step).collect::<Vec<_>>()
            });
            same(&found, steps).map_err(|why| format!("{from} to {to}: {why}"))?;
        }
        Ok(())
    }
}

/// Objects and the versions they have to be converted from.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sources {
    objects: Vec<Value>,
    wanted: String,
    versions: Vec<String>,
}

impl Sources {
    pub(crate) fn run(&self) -> Result<(), String> {
        let texts = self.objects.iter().map(serde_json::value::to_raw_value).collect::<Result<Vec<_>, _>>();
        let objects = texts.map_err(|error| error.to_string())?;
        same(source_versions(&objects, &self.wanted), self.versions.clone())
    }
}

/// The response of a conversion hook that was given one object.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Converted {
    text: String,
    objects: Option<Vec<Value>>,
    refused: Option<Vec<String>>,
}

impl Converted {
    pub(crate) fn run(&self) -> Result<(), String> {
        let values = |objects: Vec<Object>| -> Vec<Value> {
            objects.iter().map(|object| serde_json::from_str(object.get()).unwrap_or_default()).collect()
        };
        let result = parse_response(&self.text, 1).map(values);
        match (&self.objects, &self.refused) {
            (Some(objects), None) => same(&result?, objects),
            (None, Some(parts)) => refused(result, parts),
            _ => Err("a response has either objects or refused".to_owned()),
        }
    }
}

/// The response of an admission hook, and the answer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Admission {
    text: String,
    reply: Option<Value>,
    refused: Option<Vec<String>>,
}

impl Admission {
    pub(crate) fn run(&self) -> Result<(), String> {
        let question =
            r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u"}}"#;
        let review = Review::parse(question).map_err(|error| error.to_string())?;
        let result = Response::parse(&self.text);
        match (&self.reply, &self.refused) {
            (Some(reply), None) => expect(&review.reply(&result?)["response"], reply),
            (None, Some(parts)) => refused(result, parts),
            _ => Err("a response has either a reply or refused".to_owned()),
        }
    }
}

/// A webhook's name as part of its address.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PathOf {
    name: String,
    path: String,
}

impl PathOf {
    pub(crate) fn run(&self) -> Result<(), String> {
        same(path_of(&self.name), self.path.clone())
    }
}
