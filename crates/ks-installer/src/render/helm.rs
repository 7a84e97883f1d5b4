//! Renders charts with the helm binary, because ks-installer contains no Go template engine.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// Time limit, because an endless template must not block other components.
const LONGEST: Duration = Duration::from_mins(2);

/// A chart to render.
pub(super) struct Chart<'a> {
    pub(super) path: &'a Path,
    pub(super) release: &'a str,
    pub(super) namespace: &'a str,
    /// Values as YAML. They may contain secrets, so they are passed by standard input.
    pub(super) values: String,
    /// Whether hooks are rendered.
    pub(super) hooks: bool,
}

/// The manifests of a chart. Hooks are usually left out, because they are steps of an installation by helm, which the engine
/// replaces.
pub(super) async fn template(helm: &Path, chart: &Chart<'_>, kubernetes: &str) -> Result<String, String> {
    let home = tempfile::tempdir().map_err(|error| format!("cannot make a directory for helm: {error}"))?;
    let mut command = Command::new(helm);
    command.args(["template", chart.release]).arg(chart.path);
    command.args(["--namespace", chart.namespace, "--values", "-", "--include-crds"]);
    if !chart.hooks {
        command.arg("--no-hooks");
    }
    command.args(["--kube-version", kubernetes]);
    // Otherwise helm would read plugins and repositories of the current user, and write caches.
    command.env("HOME", home.path()).env_remove("HELM_PLUGINS").env_remove("KUBECONFIG");
    for variable in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
        command.env(variable, home.path());
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let missing =
        |error| format!("cannot run {}: {error}\nhint: name helm's program by --helm", helm.display());
    let mut child = command.spawn().map_err(missing)?;
    let mut stdin = child.stdin.take();
    let values = chart.values.as_bytes();
    let write = async move {
        if let Some(mut stdin) = stdin.take() {
            // helm may end before it has read all values. Then its own message contains the reason.
            let _ = stdin.write_all(values).await;
        }
    };
    let both = async { tokio::join!(write, child.wait_with_output()).1 };
    let output = tokio::time::timeout(LONGEST, both).await;
    let output = output.map_err(|_| format!("helm did not end within {} s", LONGEST.as_secs()))?;
    let output = output.map_err(|error| format!("cannot wait for helm: {error}"))?;
    if output.status.success() {
        String::from_utf8(output.stdout).map_err(|error| error.to_string())
    } else {
        Err(format!("helm: {}", String::from_utf8_lossy(&output.stderr).trim()))
    }
}
