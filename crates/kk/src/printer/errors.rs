//! Why a command ended badly, for programs: one JSON object a line for each problem.

use kk_config::Diagnostic;
use serde_json::{Value, json};

use crate::error::{Error, HostFailure};

/// An event of kind `error` for each problem, with the exit code of the command; a configuration's warnings come first.
pub fn json_lines(error: &Error) -> String {
    let before = match error {
        Error::Config(found) => warnings(&found.warnings),
        _ => String::new(),
    };
    let event = json!({ "event": "error", "exit_code": error.status().code() });
    before + &problems(error).into_iter().map(|problem| line(event.clone(), problem)).collect::<String>()
}

fn problems(error: &Error) -> Vec<Value> {
    match error {
        Error::Usage { message, hint } => vec![json!({ "message": message, "hint": hint })],
        Error::Config(found) => found.errors.iter().map(finding).collect(),
        Error::Connection(failures) | Error::Tasks { failures, .. } => failures.iter().map(on_host).collect(),
        Error::Precheck { errors } => {
            vec![json!({ "message": "problems must be solved first", "problems": errors })]
        }
        Error::Cancelled { changed, .. } => vec![json!({ "message": "cancelled", "changed": changed })],
        Error::Other { doing, cause, hint } => {
            vec![json!({ "message": format!("failed to {doing}: {cause}"), "hint": hint })]
        }
    }
}

/// An event of kind `warning` for each finding in a configuration that can be used.
pub fn warnings(findings: &[Diagnostic]) -> String {
    findings.iter().map(|one| line(json!({ "event": "warning" }), finding(one))).collect()
}

fn finding(found: &Diagnostic) -> Value {
    let place = found.place.as_ref();
    json!({
        "message": found.message,
        "hint": found.hint,
        "file": place.map(|place| &place.file),
        "line": place.map(|place| place.line),
        "column": place.map(|place| place.column),
    })
}

fn on_host(failed: &HostFailure) -> Value {
    let HostFailure { host, title, failure } = failed;
    json!({
        "message": failure.cause,
        "hint": failure.hint,
        "host": host,
        "title": title,
        "command": failure.command,
        "code": failure.code,
        "stderr": failure.stderr,
    })
}

fn line(mut event: Value, fields: Value) -> String {
    if let (Value::Object(event), Value::Object(fields)) = (&mut event, fields) {
        event.extend(fields);
    }
    format!("{event}\n")
}
