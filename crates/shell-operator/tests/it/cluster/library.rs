//! Operators in Rust.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shell_operator::cluster::ClientSettings;
use shell_operator::config::{HookConfig, Kubernetes};
use shell_operator::hook::{Effects, HookBody, Input, Target};
use shell_operator::operator::{Handle, Operator, Settings};
use shell_operator::patch::Propagation;

use crate::cluster::control_plane::{eventually, shared};

/// A program that is killed with this value.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_example_does_what_it_says() {
    let plane = shared();
    plane.kubectl("create ns teams-a");
    plane.kubectl("create ns teams-b");
    plane.kubectl("label ns teams-a team=red");
    let example = Path::new(env!("CARGO_BIN_EXE_shell-operator")).with_file_name("examples").join("teams");
    let child = Command::new(example).env("KUBECONFIG", plane.kubeconfig()).stdin(Stdio::null()).spawn();
    let _program = Program(child.unwrap());
    let team = |namespace: &str| format!("-n {namespace} get cm team -o jsonpath='{{.data.team}}'");
    eventually(&team("teams-a"), "red");
    plane.kubectl("label ns teams-b team=blue");
    eventually(&team("teams-b"), "blue");
    plane.kubectl("label ns teams-a team=green --overwrite");
    eventually(&team("teams-a"), "green");
}

async fn start(name: &str, config: HookConfig, body: impl HookBody) -> Handle {
    let client = ClientSettings { kubeconfig: Some(shared().kubeconfig()), ..ClientSettings::default() };
    let settings = Settings { client, ..Settings::default() };
    Operator::builder(settings).hook(name, config, body).build().await.unwrap()
}

fn maps(namespace: &str) -> Kubernetes {
    Kubernetes::new("v1", "ConfigMap").name("maps").namespace(namespace).label("t", "x")
}

async fn wait_for(what: &str, done: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(40);
    while !done() {
        assert!(Instant::now() < until, "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_that_fails_is_run_again_and_its_effects_come_only_when_it_succeeds() {
    let plane = shared();
    plane.kubectl("create ns fn-fails");
    plane.apply(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: old, namespace: fn-fails, labels: {t: x}}}",
    );
    let attempts = Arc::new(AtomicUsize::new(0));
    let counted = attempts.clone();
    let body = move |input: Input| {
        let attempt = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            let objects: Vec<Value> = input.objects("maps")?;
            let mut effects = Effects::new();
            for object in &objects {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                let target = Target::new("v1", "ConfigMap", name).namespace("fn-fails");
                effects.delete(target, Propagation::Background);
            }
            let made = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("made-{attempt}"), "namespace": "fn-fails"}});
            effects.create_if_missing(made);
            if attempt == 0 { Err(anyhow::anyhow!("not yet")) } else { Ok(effects) }
        }
    };
    let config = HookConfig::builder().kubernetes(maps("fn-fails")).build().unwrap();
    let operator = start("f", config, body).await;
    wait_for("the first attempt", || attempts.load(Ordering::SeqCst) == 1).await;
    wait_for("its failure", || {
        operator
            .queues()
            .iter()
            .flat_map(|queue| &queue.tasks)
            .any(|task| task.description.contains("f FAILED: not yet"))
    })
    .await;
    assert!(!operator.is_ready());
    plane.kubectl("-n fn-fails get cm old");
    wait_for("readiness", || operator.is_ready()).await;
    eventually("-n fn-fails get cm made-1 -o jsonpath='{.metadata.name}'", "made-1");
    plane.try_kubectl("-n fn-fails get cm made-0").unwrap_err();
    plane.try_kubectl("-n fn-fails get cm old").unwrap_err();
    operator.stop();
    operator.wait().await.unwrap();
}

/// The function continues when the operator is to end, and its effects are applied.
#[tokio::test(flavor = "multi_thread")]
async fn an_end_lets_a_function_finish() {
    let plane = shared();
    plane.kubectl("create ns fn-end");
    let body = |input: Input| async move {
        input.stop().cancelled().await;
        let made = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made", "namespace": "fn-end"}});
        let mut effects = Effects::new();
        effects.create_or_update(made);
        Ok::<_, anyhow::Error>(effects)
    };
    let config = HookConfig::builder().on_startup(1).build().unwrap();
    let operator = start("f", config, body).await;
    let running = || operator.queues().iter().any(|queue| queue.status == "run first task");
    wait_for("the run", running).await;
    operator.stop();
    operator.wait().await.unwrap();
    plane.kubectl("-n fn-end get cm made");
}

#[tokio::test]
async fn two_hooks_of_one_name_are_refused() {
    let config = HookConfig::builder().on_startup(1).build().unwrap();
    let nothing = |_: Input| async { Ok::<_, anyhow::Error>(Effects::new()) };
    let client = ClientSettings { kubeconfig: Some(shared().kubeconfig()), ..ClientSettings::default() };
    let settings = Settings { client, ..Settings::default() };
    let builder = Operator::builder(settings).hook("a", config.clone(), nothing).hook("a", config, nothing);
    let error = builder.build().await.err().unwrap().to_string();
    assert_eq!(error, "there are two hooks with the name 'a'");
}
