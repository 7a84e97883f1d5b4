//! Queries the API of a running cluster. The local kubectl makes the requests, because it supports every way to log in.

use std::{fs, path::Path, process::Stdio};

use kk_engine::Warning;
use serde_json::Value;

/// Why kubectl gave no answer.
pub(super) enum Failure {
    /// It could not be started.
    NotStarted(String),
    /// It failed, or its output is not JSON.
    NoAnswer(String),
}

/// The warning before kubectl reads a kubeconfig, which can start the commands that the file names. If the file is missing,
/// kubectl reports it.
pub(super) fn warning(kubeconfig: &Path) -> Option<Warning> {
    let file = kubeconfig.display();
    let message = match kk_cluster::kubeconfig_programs(&fs::read_to_string(kubeconfig).ok()?) {
        Ok(users) if users.is_empty() => return None,
        Ok(users) => format!("kubectl may start programs that {file} names, for {}", users.join(", ")),
        Err(_) => format!("{file} cannot be read as YAML, so programs that kubectl may start are not known"),
    };
    let hint = "use only a kubeconfig from a source that you trust";
    Some(Warning { message, hint: Some(hint.to_owned()), place: None })
}

/// The output of `kubectl get`; null without output. Without a kubeconfig, kubectl uses its own default.
pub(super) async fn get(kubeconfig: Option<&Path>, words: &[&str]) -> Result<Value, Failure> {
    let mut kubectl = tokio::process::Command::new("kubectl");
    if let Some(kubeconfig) = kubeconfig {
        kubectl.arg("--kubeconfig").arg(kubeconfig);
    }
    kubectl.args(["--request-timeout", "30s", "get"]).args(words).args(["-o", "json"]);
    let output = kubectl.stdin(Stdio::null()).kill_on_drop(true).output().await;
    let output = output.map_err(|error| Failure::NotStarted(error.to_string()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().last().unwrap_or("kubectl says nothing");
        return Err(Failure::NoAnswer(last.to_owned()));
    }
    if output.stdout.trim_ascii().is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(&output.stdout).map_err(|error| Failure::NoAnswer(error.to_string()))
}

/// The items of a list of objects.
pub(super) fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list["items"].as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_kubectl_may_start_are_named_before_it_runs() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config");
        let warned = |text: &str| {
            fs::write(&file, text).unwrap();
            warning(&file).map(|warning| warning.message)
        };
        assert_eq!(warning(&file), None, "kubectl reports it");
        assert_eq!(warned("users: [{name: a, user: {token: t}}]\n"), None);
        let found = warned("users:\n- name: ops\n  user:\n    exec: {command: sh}\n").unwrap();
        assert!(found.contains("may start programs") && found.ends_with("for \"ops\" (exec)"), "{found}");
        let found = warned("users: [{name: b, user: {auth-provider: {name: x}}}]\n").unwrap();
        assert!(found.ends_with("\"b\" (auth-provider)"), "{found}");
        assert!(warned("users: [").unwrap().contains("cannot be read as YAML"));
    }
}
