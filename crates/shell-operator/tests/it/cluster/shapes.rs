//! Hooks in the shapes that people give them: directories with a library, programs that call kubectl, several hooks for
//! one purpose.

use std::fs;

use crate::cluster::control_plane::{eventually, shared};
use crate::cluster::operator::{Operator, Setup};
use crate::cluster::programs;

fn wait_for_log(operator: &Operator, text: &str) {
    operator.wait_for(text, |operator| operator.log().contains(text));
}

/// Hooks are ordered by `onStartup`, then by their paths; a file that is not executable is no hook.
#[test]
fn hooks_in_directories_share_a_library_and_start_in_their_order() {
    let setup = Setup::new(shared());
    let hooks = setup.hooks_dir();
    for name in ["common", "01-late", "02-early"] {
        fs::create_dir(hooks.join(name)).unwrap();
    }
    let library = "greet() { echo \"$1 greets from $(basename \"$(pwd)\")\"; }\n";
    fs::write(hooks.join("common/library.sh"), library).unwrap();
    let shell = |order: u8| {
        format!(
            "#!/bin/sh\n. \"$(dirname \"$0\")/../common/library.sh\"\n\
             if [ \"$1\" = --config ]; then echo '{{\"configVersion\": \"v1\", \"onStartup\": {order}}}'; else greet shell; fi\n"
        )
    };
    let python = "#!/usr/bin/env python3\nimport json, os, sys\n\
        if sys.argv[1:] == ['--config']:\n    print(json.dumps({'configVersion': 'v1', 'onStartup': 2}))\n\
        else:\n    context = json.load(open(os.environ['BINDING_CONTEXT_PATH']))\n    print('python greets', context[0]['binding'])\n";
    let operator = setup
        .program("01-late/hook.sh", &shell(20))
        .program("02-early/hook.sh", &shell(1))
        .program("03.py", python)
        .start();
    operator.wait_ready();
    let log = operator.log();
    let at = |text: &str| log.find(text).unwrap_or_else(|| panic!("{text} is missing in:\n{log}"));
    assert!(at("shell greets from 02-early") < at("python greets onStartup"), "{log}");
    assert!(at("python greets onStartup") < at("shell greets from 01-late"), "{log}");
}

/// Two bindings on one kind that get different events.
#[test]
fn a_namespace_is_announced_when_it_comes_changes_and_goes() {
    let plane = shared();
    let config = "configVersion: v1\nkubernetes:\n\
        - {name: come-and-go, apiVersion: v1, kind: namespace, executeHookOnEvent: [Added, Deleted], nameSelector: {matchNames: [announced]}}\n\
        - {name: labels, apiVersion: v1, kind: namespace, executeHookOnEvent: [Modified], jqFilter: .metadata.labels, nameSelector: {matchNames: [announced]}}";
    let body = "keep\njq -r '.[] | select(.type == \"Event\") | \"\\(.binding): \\(.object.metadata.name) is \\(.watchEvent)\"' $BINDING_CONTEXT_PATH";
    let operator = Setup::new(plane).hook("h", config, body).start();
    operator.wait_ready();
    plane.kubectl("create ns announced");
    wait_for_log(&operator, "come-and-go: announced is Added");
    plane.kubectl("label ns announced team=red");
    wait_for_log(&operator, "labels: announced is Modified");
    plane.kubectl("delete ns announced");
    wait_for_log(&operator, "come-and-go: announced is Deleted");
}

/// Events that other programs report are objects like any other. If a hook requests a version that an earlier release removed,
/// the log names the existing version.
#[test]
fn reported_events_are_objects_and_a_version_that_ended_is_named() {
    let plane = shared();
    plane.kubectl("create ns reports");
    let config = |version: &str| {
        format!(
            "configVersion: v1\nkubernetes: [{{apiVersion: {version}, kind: Event, namespace: {{nameSelector: {{matchNames: [reports]}}}}, \
             fieldSelector: {{matchExpressions: [{{field: metadata.namespace, operator: Equals, value: reports}}]}}}}]"
        )
    };
    let body = "jq '.[] | select(.type == \"Event\") | .object | {reason, note}' $BINDING_CONTEXT_PATH";
    let operator = Setup::new(plane)
        .hook("old", &config("events.k8s.io/v1beta1"), "keep")
        .hook("today", &config("events.k8s.io/v1"), body)
        .start();
    wait_for_log(
        &operator,
        "the cluster has no kind 'Event' in 'events.k8s.io/v1beta1'; it has one in 'events.k8s.io/v1'",
    );
    wait_for_log(&operator, r#""Unlock kubernetes.Event tasks","binding":"kubernetes","hook":"today""#);
    plane.apply(
        "{apiVersion: events.k8s.io/v1, kind: Event, metadata: {name: one, namespace: reports}, eventTime: '2026-01-01T00:00:00.000000Z', reason: TooFull, note: no room, type: Warning, action: Wait, reportingController: example.org/c, reportingInstance: c, regarding: {kind: Namespace, name: reports, namespace: reports}}",
    );
    wait_for_log(&operator, "TooFull");
}

/// Three hooks for one purpose, which do everything by kubectl: a new Secret is copied, a new namespace gets copies, and the
/// copies are deleted with the Secret.
#[test]
fn hooks_that_call_kubectl_keep_copies_of_secrets() {
    let plane = shared();
    for name in ["by-kubectl", "by-kubectl-1"] {
        plane.kubectl(&format!("create ns {name}"));
    }
    plane.kubectl("label ns by-kubectl-1 copies=by-kubectl");
    let secrets = |events: &str| {
        format!(
            "configVersion: v1\nkubernetes: [{{kind: Secret, apiVersion: v1, executeHookOnEvent: [{events}], executeHookOnSynchronization: false, \
             labelSelector: {{matchLabels: {{copied: 'yes'}}}}, namespace: {{nameSelector: {{matchNames: [by-kubectl]}}}}}}]"
        )
    };
    let namespaces = "configVersion: v1\nkubernetes: [{kind: namespace, apiVersion: v1, executeHookOnEvent: [Added], executeHookOnSynchronization: false, \
        labelSelector: {matchLabels: {copies: by-kubectl}}}]";
    let common = "set -e\n\
        names() { jq -r '.[].object.metadata.name' $BINDING_CONTEXT_PATH; }\n\
        targets() { kubectl get ns -l copies=by-kubectl -o name | cut -d/ -f2; }\n\
        copy() { kubectl -n by-kubectl get secret $1 -o json | jq '.metadata |= {name, labels}' | kubectl -n $2 apply -f -; }\n";
    let kubectl = programs::find("kubernetes-", "kubectl");
    let path = format!("PATH={}:{}", kubectl.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let operator = Setup::new(plane)
        .wrapper(&["env", &path])
        .hook("copy", &secrets("Added, Modified"), &format!("{common}for s in $(names); do for n in $(targets); do copy $s $n; done; done"))
        .hook("fill", namespaces, &format!("{common}for n in $(names); do for s in $(kubectl -n by-kubectl get secret -l copied=yes -o name); do copy ${{s#*/}} $n; done; done"))
        .hook("remove", &secrets("Deleted"), &format!("{common}for s in $(names); do for n in $(targets); do kubectl -n $n delete secret $s; done; done"))
        .start();
    operator.wait_ready();
    let value = |ns: &str| format!("-n {ns} get secret s -o 'go-template={{{{.data.k | base64decode}}}}'");
    plane.apply("{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: by-kubectl, labels: {copied: 'yes'}}, stringData: {k: one}}");
    eventually(&value("by-kubectl-1"), "one");
    plane.kubectl("create ns by-kubectl-2");
    plane.kubectl("label ns by-kubectl-2 copies=by-kubectl");
    eventually(&value("by-kubectl-2"), "one");
    plane.kubectl("-n by-kubectl patch secret s -p '{\"stringData\":{\"k\":\"two\"}}'");
    eventually(&value("by-kubectl-2"), "two");
    plane.kubectl("-n by-kubectl delete secret s");
    for ns in ["by-kubectl-1", "by-kubectl-2"] {
        eventually(&format!("-n {ns} get secret -l copied=yes -o name"), "");
    }
}
