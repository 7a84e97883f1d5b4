//! The effects of each hook of `deploy/hooks`, driven by kubectl and seen from outside.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::checks::{items, text};
use crate::context::Context;
use crate::site::Site;

/// Namespaces of the test; `strict` is under the policy.
pub(super) const NAMESPACES: [&str; 3] = ["one", "two", "strict"];
const SETUP: &str = "
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: one, labels: {copy.example.com/target: 'yes'}}}
- {apiVersion: v1, kind: Namespace, metadata: {name: two, labels: {copy.example.com/target: 'yes'}}}
- {apiVersion: v1, kind: Namespace, metadata: {name: strict, labels: {policy.example.com/enforce: 'yes'}}}
- {apiVersion: v1, kind: Secret, metadata: {namespace: two, name: theirs}, stringData: {token: not-ours}}
";
/// A hook acts within a second; a pod that starts on a busy machine takes longer.
const PATIENCE: Duration = Duration::from_mins(1);

/// A cluster with the operator in it.
struct Operated<'a> {
    ctx: &'a Context<'a>,
    site: &'a Site,
}

/// Drives each hook.
pub(super) fn all_work(ctx: &Context<'_>, site: &Site) -> Result<()> {
    let operated = Operated { ctx, site };
    operated.is_ready()?;
    ctx.apply(site, SETUP)?;
    for (hook, check) in [
        ("pods.sh", pod_names_are_printed as fn(&Operated<'_>) -> Result<()>),
        ("users.sh", users_are_lines_of_a_secret),
        ("secrets.sh", secrets_are_copied),
        ("checksum.py", a_change_of_a_configmap_reaches_its_deployment),
        ("nodes.py", nodes_have_metrics),
        ("policy.sh", deployments_keep_the_policy),
        ("backups.py", objects_have_three_versions),
        ("process 1", orphans_are_reaped),
        ("the operator's end", what_happened_without_it_is_made_up_for),
    ] {
        check(&operated).context(hook)?;
    }
    Ok(())
}

impl Operated<'_> {
    fn kubectl(&self, words: &str) -> Result<String> {
        Ok(self.ctx.kubectl(self.site, words)?.trim().to_owned())
    }

    /// Runs a command in the operator's pod.
    fn in_pod(&self, words: &str) -> Result<String> {
        self.kubectl(&format!("-n shell-operator exec deployment/shell-operator -- {words}"))
    }

    fn apply(&self, object: &str) -> Result<()> {
        self.ctx.apply(self.site, object)
    }

    /// Waits until `is_right` accepts the output of kubectl; failures of kubectl before are no error.
    fn until(&self, words: &str, what: &str, is_right: impl Fn(&str) -> bool) -> Result<String> {
        let mut last = String::new();
        let found = self.ctx.until(what, PATIENCE, || {
            last = self.kubectl(words).unwrap_or_else(|error| format!("{error:#}"));
            Ok(is_right(&last).then(|| last.clone()))
        });
        found.with_context(|| format!("`kubectl {words}` said last: {last}"))
    }

    /// Waits until kubectl prints exactly this.
    fn becomes(&self, words: &str, wanted: &str) -> Result<()> {
        self.until(words, &format!("`{wanted}`"), |said| said == wanted).map(drop)
    }

    /// The one pod of the operator is ready and was never restarted.
    fn is_ready(&self) -> Result<()> {
        self.becomes(
            "-n shell-operator get pods -l app=shell-operator -o jsonpath='{range .items[*].status.containerStatuses[*]}{.ready} {.restartCount} {end}'",
            "true 0",
        )
    }
}

fn pod_names_are_printed(operated: &Operated<'_>) -> Result<()> {
    // It never starts, but it is there.
    operated.kubectl("-n one run newcomer --image=example.com/none:1")?;
    let log = "-n shell-operator logs deployment/shell-operator --tail=-1";
    operated.until(log, "the name in the log", |log| log.contains("Pod one/newcomer is new")).map(drop)
}

fn users_are_lines_of_a_secret(operated: &Operated<'_>) -> Result<()> {
    let user = |name: &str, hash: &str| {
        operated.apply(&format!(
            "{{apiVersion: auth.example.com/v1, kind: User, metadata: {{name: {name}}}, spec: {{passwordHash: {hash}}}}}"
        ))
    };
    let lines = "-n shell-operator get secret htpasswd -o go-template='{{.data.htpasswd | base64decode}}'";
    user("ada", "$2y$05$ada")?;
    user("bob", "$2y$05$bob")?;
    operated.becomes(lines, "ada:$2y$05$ada\nbob:$2y$05$bob")?;
    user("ada", "$2y$05$other")?;
    operated.becomes(lines, "ada:$2y$05$other\nbob:$2y$05$bob")?;
    operated.kubectl("delete user bob")?;
    operated.becomes(lines, "ada:$2y$05$other")
}

fn secrets_are_copied(operated: &Operated<'_>) -> Result<()> {
    let source = |name: &str, token: &str| {
        operated.apply(&format!(
            "{{apiVersion: v1, kind: Secret, metadata: {{namespace: shell-operator, name: {name}, labels: {{copy.example.com/source: 'yes'}}}}, stringData: {{token: {token}}}}}"
        ))
    };
    let is = |namespace: &str, name: &str, token: &str| {
        let words =
            format!("-n {namespace} get secret {name} -o go-template='{{{{.data.token | base64decode}}}}'");
        operated.becomes(&words, token)
    };
    source("ours", "first")?;
    source("theirs", "first")?;
    is("one", "ours", "first")?;
    is("two", "ours", "first")?;
    operated.kubectl("-n one delete secret ours")?;
    is("one", "ours", "first").context("after the copy was deleted")?;
    source("ours", "second")?;
    is("one", "ours", "second")?;
    is("two", "ours", "second")?;
    operated.kubectl("label namespace two copy.example.com/target-")?;
    let copies = "get secrets -A -l copy.example.com/copy=yes -o jsonpath='{range .items[*]}{.metadata.namespace}/{.metadata.name} {end}'";
    operated.becomes(copies, "one/ours one/theirs")?;
    is("two", "theirs", "not-ours").context("a Secret that is no copy")
}

fn a_change_of_a_configmap_reaches_its_deployment(operated: &Operated<'_>) -> Result<()> {
    let settings = |color: &str| {
        operated.apply(&format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{namespace: one, name: settings, labels: {{checksum.example.com/watch: 'yes'}}}}, data: {{color: {color}}}}}"
        ))
    };
    settings("red")?;
    operated.kubectl("-n one create deployment shop --image=example.com/none:1 --replicas=0")?;
    operated.kubectl("-n one label deployment shop checksum.example.com/of=settings")?;
    let annotation = r"-n one get deployment shop -o jsonpath='{.spec.template.metadata.annotations.checksum\.example\.com/value}'";
    let red = operated.until(annotation, "a SHA-256", |value| value.len() == 64)?;
    settings("blue")?;
    operated.until(annotation, "another SHA-256", |value| value.len() == 64 && value != red)?;
    settings("red")?;
    operated.becomes(annotation, &red)
}

fn nodes_have_metrics(operated: &Operated<'_>) -> Result<()> {
    let pods =
        operated.ctx.kubectl_json(operated.site, "-n shell-operator get pods -l app=shell-operator")?;
    let pod = items(&pods).map(|pod| text(&pod["metadata"]["name"])).next().context("there is no pod")?;
    let words = format!("get --raw /api/v1/namespaces/shell-operator/pods/{pod}:9115/proxy/metrics/hooks");
    let measured = |metrics: &str, name: &str, node: &str| -> Option<f64> {
        let label = format!("node=\"{node}\"");
        let line = metrics.lines().find(|line| line.starts_with(name) && line.contains(&label))?;
        line.rsplit(' ').next()?.parse().ok()
    };
    let hosts = &operated.site.hosts;
    let metrics = operated.until(&words, "a figure of each node", |metrics| {
        hosts.iter().all(|host| measured(metrics, "node_ping_ok", host) == Some(1.0))
    })?;
    for host in hosts {
        let seconds = measured(&metrics, "node_ping_seconds", host).context("no time is measured")?;
        ensure!(seconds > 0.0 && seconds < 2.0, "{host} answered after {seconds} s");
    }
    Ok(())
}

fn deployments_keep_the_policy(operated: &Operated<'_>) -> Result<()> {
    let create =
        |name: &str, image: &str| format!("-n strict create deployment {name} --replicas=0 --image={image}");
    // The API server needs a moment to learn of the webhooks; a dry run calls them, too.
    let attempt = format!("{} --dry-run=server", create("loose", "nginx"));
    let denied = |said: &str| said.contains("denied the request: images need a fixed version: nginx");
    operated.until(&attempt, "a refusal", denied)?;
    operated.kubectl(&create("fixed", "nginx:1.27"))?;
    operated.becomes(
        "-n strict get deployment fixed -o jsonpath='{.spec.template.spec.automountServiceAccountToken}'",
        "false",
    )
}

fn objects_have_three_versions(operated: &Operated<'_>) -> Result<()> {
    let strategy = "get crd backups.backup.example.com -o jsonpath='{.spec.conversion.strategy}'";
    operated.becomes(strategy, "Webhook")?;
    let backup = |version: &str, name: &str, spec: &str| {
        operated.apply(&format!(
            "{{apiVersion: backup.example.com/{version}, kind: Backup, metadata: {{namespace: one, name: {name}}}, spec: {spec}}}"
        ))
    };
    let spec = |version: &str, name: &str| {
        operated.kubectl(&format!(
            "-n one get backups.{version}.backup.example.com {name} -o jsonpath='{{.spec}}'"
        ))
    };
    let in_v1 = r#"{"at":{"hour":3,"minute":10}}"#;
    // An object that is written before the API server knows of the conversion is not converted.
    operated.ctx.until("a conversion", PATIENCE, || {
        operated.kubectl("-n one delete backup old --ignore-not-found")?;
        let written = backup("v1alpha1", "old", "{time: '03:10'}");
        Ok(written.and_then(|()| spec("v1", "old")).is_ok_and(|spec| spec == in_v1).then_some(()))
    })?;
    for (version, name, wanted) in [
        ("v1alpha1", "old", r#"{"time":"03:10"}"#),
        ("v1beta1", "old", r#"{"hour":3,"minute":10}"#),
        ("v1", "old", in_v1),
    ] {
        let found = spec(version, name)?;
        ensure!(found == wanted, "in {version} it is {found}, not {wanted}");
    }
    backup("v1", "new", "{at: {hour: 23, minute: 5}}")?;
    let found = spec("v1alpha1", "new")?;
    ensure!(found == r#"{"time":"23:05"}"#, "the new one in v1alpha1 is {found}");
    Ok(())
}

fn orphans_are_reaped(operated: &Operated<'_>) -> Result<()> {
    let script = r#"(sleep 0.1 &); sleep 1; grep -l "^State:.Z" /proc/[0-9]*/status || echo none"#;
    let dead = operated.in_pod(&format!("sh -c '{script}'"))?;
    ensure!(dead == "none", "dead processes that are not waited for: {dead}");
    Ok(())
}

fn what_happened_without_it_is_made_up_for(operated: &Operated<'_>) -> Result<()> {
    let queues = operated.in_pod("shell-operator queue list")?;
    ensure!(queues.contains("main"), "`shell-operator queue list` says: {queues}");
    operated.is_ready().context("after all hooks")?;
    operated.kubectl("-n shell-operator scale deployment shell-operator --replicas=0")?;
    // Shorter than the 40 s for which the kubelet waits for processes that ignore SIGTERM.
    operated.ctx.until("the end of the operator's pod", Duration::from_secs(35), || {
        let left = operated.kubectl("-n shell-operator get pods -l app=shell-operator -o name")?;
        Ok(left.is_empty().then_some(()))
    })?;
    operated.kubectl("delete user ada")?;
    operated.kubectl("-n one delete secret ours")?;
    operated.kubectl("-n shell-operator scale deployment shell-operator --replicas=1")?;
    operated.is_ready()?;
    let lines = "-n shell-operator get secret htpasswd -o go-template='{{.data.htpasswd | base64decode}}'";
    operated.becomes(lines, "")?;
    operated.becomes("-n one get secret ours -o name", "secret/ours")
}
