//! Tests the removal of components with definitions, finalizers and data.

use std::time::Duration;

use ks_installer::engine::Phase;
use serde_json::json;

use crate::cluster::audit;
use crate::cluster::lab::{Lab, Told, pass, pass_until};

const DEFINITION: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.NS.example.com}
spec:
  group: NS.example.com
  scope: Namespaced
  names: {kind: Thing, plural: things, singular: thing}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
{apiVersion: NS.example.com/v1, kind: Thing, metadata: {name: ours}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NS}, rules: []}
---
{apiVersion: v1, kind: Namespace, metadata: {name: NS-own}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: map, namespace: NS-own}}
";
const THINGS: &str = "\
enabled: spec.things.enabled
namespace: NS
remove: {withinSeconds: 2}
sources: [{manifests: manifests/things.yaml}]
";

#[tokio::test]
async fn objects_of_a_definition_go_first_and_one_that_does_not_go_is_named() {
    let lab =
        Lab::new("finalizer", &[("components/things.yaml", THINGS), ("manifests/things.yaml", DEFINITION)]);
    let engine = lab.engine().await;
    pass(&engine, &json!({"things": {"enabled": true}}), &[]).await;
    // An object of a user, with a finalizer that no controller handles.
    lab.apply(
        "{apiVersion: finalizer.example.com/v1, kind: Thing, metadata: {name: theirs, namespace: NS, finalizers: [example.com/busy]}}",
    );
    let (off, told) = (json!({"things": {"enabled": false}}), Told::default());
    pass_until(&engine, &off, &told, "the name of the finalizer", |told| {
        told.failure("things").is_some_and(|text| {
            text.starts_with("FinalizerStuck: Thing finalizer/theirs") && text.contains("example.com/busy")
        })
    })
    .await;
    // During the wait, all objects that the controller may need exist.
    assert!(lab.has("clusterrole/finalizer") && lab.has("crd/things.finalizer.example.com"));
    lab.kubectl("patch thing theirs --type=merge -p '{\"metadata\":{\"finalizers\":null}}'");
    let told = pass(&engine, &off, &[]).await;
    assert_eq!(told.last("things"), Some(Phase::Removed));
    for what in ["clusterrole/finalizer", "crd/things.finalizer.example.com", "ns/finalizer-own"] {
        assert!(!lab.has(what), "{what} is left");
    }
}

/// A definition of a kind with arbitrary fields.
fn definition(group: &str, kind: &str, scope: &str) -> String {
    let singular = kind.to_lowercase();
    let schema = "{openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}";
    format!(
        "{{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {{name: {singular}s.{group}}}, \
         spec: {{group: {group}, scope: {scope}, names: {{kind: {kind}, plural: {singular}s, singular: {singular}}}, \
         versions: [{{name: v1beta1, served: true, storage: true, schema: {schema}}}]}}}}\n"
    )
}

#[tokio::test]
async fn objects_in_other_clusters_stay_when_what_stands_for_them_goes() {
    let component = "enabled: spec.on\nnamespace: NS\nremove: {withinSeconds: 2}\nsources: [{manifests: manifests/fed.yaml}]\n";
    let ours = "{apiVersion: core.kubefed.io/v1beta1, kind: FederatedTypeConfig, metadata: {name: things}}\n---\n\
        {apiVersion: types.kubefed.io/v1beta1, kind: FederatedThing, metadata: {name: ours}}\n";
    // The order is the order in the charts of `KubeFed`.
    let settings = definition("core.kubefed.io", "FederatedTypeConfig", "Namespaced");
    let things = definition("types.kubefed.io", "FederatedThing", "Namespaced");
    let manifests = [settings.as_str(), &things, ours].join("---\n");
    let lab =
        Lab::new("federation", &[("components/fed.yaml", component), ("manifests/fed.yaml", &manifests)]);
    let engine = lab.engine().await;
    pass(&engine, &json!({"on": true}), &[]).await;
    // An object of a user in several clusters, with the finalizer of KubeFed.
    lab.apply(
        "{apiVersion: types.kubefed.io/v1beta1, kind: FederatedThing, metadata: {name: theirs, namespace: NS, \
         finalizers: [kubefed.io/sync-controller]}}",
    );
    let (off, told) = (json!({"on": false}), Told::default());
    pass_until(&engine, &off, &told, "the name of the finalizer", |told| {
        told.failure("fed").is_some_and(|text| text.contains("kubefed.io/sync-controller"))
    })
    .await;
    let orphan = "-o jsonpath='{.metadata.annotations.kubefed\\.io/orphan}'";
    assert_eq!(lab.kubectl(&format!("get federatedthing theirs {orphan}")), "true");
    // Without this setting, KubeFed would not handle the kind.
    assert!(lab.has("federatedtypeconfig/things"));
    lab.kubectl("patch federatedthing theirs --type=merge -p '{\"metadata\":{\"finalizers\":null}}'");
    let told = pass(&engine, &off, &[]).await;
    assert_eq!(told.last("fed"), Some(Phase::Removed));
    let asked = audit::requests("federation");
    let first = |what: &str| asked.iter().position(|request| request == what);
    for name in ["ours", "theirs"] {
        let [said, deleted] =
            ["patch", "delete"].map(|verb| first(&format!("{verb} federatedthings/{name}")));
        // The first patch of `ours` has created it. The count below covers its annotation.
        assert!(said.is_some() && deleted.is_some() && said < deleted, "{name}: {asked:?}");
        let setting = first("delete federatedtypeconfigs/things");
        assert!(deleted < setting, "{name}: {asked:?}");
    }
    let patches = asked.iter().filter(|request| *request == "patch federatedthings/ours");
    assert_eq!(patches.count(), 2, "it is made, and told that what it stands for stays: {asked:?}");
}

#[tokio::test]
async fn projects_of_users_leave_their_workspace_before_it_goes() {
    let component = "enabled: spec.on\nnamespace: NS\nsources: [{manifests: manifests/tenant.yaml}]\n";
    let kind = definition("tenant.kubesphere.io", "Workspace", "Cluster");
    let lab =
        Lab::new("projects", &[("components/tenant.yaml", component), ("manifests/tenant.yaml", &kind)]);
    let engine = lab.engine().await;
    pass(&engine, &json!({"on": true}), &[]).await;
    lab.apply("{apiVersion: tenant.kubesphere.io/v1beta1, kind: Workspace, metadata: {name: theirs}}");
    let uid = lab.kubectl("get workspace theirs -o jsonpath='{.metadata.uid}'");
    lab.apply(&format!(
        "{{apiVersion: v1, kind: Namespace, metadata: {{name: NS-own, labels: {{kubesphere.io/workspace: theirs, stays: here}}, ownerReferences: \
         [{{apiVersion: tenant.kubesphere.io/v1beta1, kind: Workspace, name: theirs, uid: {uid}, controller: true}}]}}}}"
    ));
    let told = pass(&engine, &json!({"on": false}), &[]).await;
    assert_eq!(told.last("tenant"), Some(Phase::Removed));
    // No garbage collector runs in this test. It is sufficient that the namespace had no owner when the workspace was deleted.
    let left =
        lab.kubectl("get ns projects-own -o jsonpath='{.metadata.labels} {.metadata.ownerReferences}'");
    assert!(left.contains("\"stays\":\"here\"") && !left.contains("orkspace"), "{left}");
    let asked = audit::requests("projects");
    let first = |what: &str| asked.iter().position(|request| request == what);
    let (left, gone) = (first("patch namespaces/projects-own"), first("delete workspaces/theirs"));
    assert!(left.is_some() && left < gone, "{asked:?}");
    // Both tests use the same kind, so they run one after the other.
    namespaces_leave_a_workspace_that_was_taken_over_before_it_goes().await;
}

/// In an adopted KubeSphere, another owner created the kind, and the workspace of its namespaces is adopted.
async fn namespaces_leave_a_workspace_that_was_taken_over_before_it_goes() {
    let component = "enabled: spec.on\nnamespace: NS\nsources: [{manifests: manifests/w.yaml}]\n";
    let workspace =
        "{apiVersion: tenant.kubesphere.io/v1beta1, kind: Workspace, metadata: {name: NS-system}}\n";
    let lab = Lab::new(
        "adopted-projects",
        &[("components/tenant.yaml", component), ("manifests/w.yaml", workspace)],
    );
    lab.apply(&definition("tenant.kubesphere.io", "Workspace", "Cluster"));
    lab.kubectl("wait --for=condition=Established crd/workspaces.tenant.kubesphere.io --timeout=60s");
    lab.apply(workspace);
    let uid = lab.kubectl("get workspace adopted-projects-system -o jsonpath='{.metadata.uid}'");
    for (namespace, of) in [("own", "NS-system"), ("other", "elsewhere")] {
        lab.apply(&format!(
            "{{apiVersion: v1, kind: Namespace, metadata: {{name: NS-{namespace}, labels: {{kubesphere.io/workspace: {of}}}, ownerReferences: \
             [{{apiVersion: tenant.kubesphere.io/v1beta1, kind: Workspace, name: {of}, uid: {uid}}}]}}}}"
        ));
    }
    let engine = lab.engine().await;
    pass(&engine, &json!({"on": true}), &[]).await;
    let told = pass(&engine, &json!({"on": false}), &[]).await;
    assert_eq!(told.last("tenant"), Some(Phase::Removed));
    assert!(lab.has("workspace/adopted-projects-system"), "it was there before");
    let metadata = |name: &str| {
        lab.kubectl(&format!(
            "get ns adopted-projects-{name} -o jsonpath='{{.metadata.labels}} {{.metadata.ownerReferences}}'"
        ))
    };
    assert!(
        metadata("own").contains("adopted-projects-system"),
        "it is in it as before: {}",
        metadata("own")
    );
    assert!(metadata("other").contains("elsewhere"), "that one stays: {}", metadata("other"));
}

const ALL_KINDS: &str = "\
{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: 0, selector: {matchLabels: {a: b}}, \
 template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}
---
{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 80}]}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NS}, rules: []}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: NS}, \
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: NS}}
";

#[tokio::test]
async fn an_object_that_nothing_keeps_costs_a_look_and_a_delete() {
    let component = "enabled: spec.on\nnamespace: NS\nsources: [{manifests: manifests/all.yaml}]\n";
    let lab = Lab::new("cost", &[("components/all.yaml", component), ("manifests/all.yaml", ALL_KINDS)]);
    let (engine, on, told) = (lab.engine().await, json!({"on": true}), Told::default());
    let waits = |told: &Told| matches!(told.last("all"), Some(Phase::Progressing(_)));
    pass_until(&engine, &on, &told, "a wait for the Deployment", waits).await;
    let status = "{\"status\":{\"observedGeneration\":9,\"replicas\":0}}";
    lab.kubectl(&format!("patch deployment d --subresource=status --type=merge -p '{status}'"));
    pass(&engine, &on, &[]).await;
    let before = audit::requests("cost").len();
    let told = pass(&engine, &json!({"on": false}), &[]).await;
    assert_eq!(told.last("all"), Some(Phase::Removed));
    let mut asked = audit::requests("cost").split_off(before);
    // Requests for kinds depend on the elapsed time.
    asked.retain(|request| !request.starts_with("get /api"));
    let of = |verb: &str| asked.iter().filter(|request| request.starts_with(verb)).count();
    // The inventory is written first, and deleted last.
    assert_eq!((of("patch secrets/"), of("get "), of("delete "), asked.len()), (1, 5, 6, 12), "{asked:?}");
}

const DATA: &str = "\
{apiVersion: v1, kind: Secret, metadata: {name: given}, stringData: {k: '{{ generated.word }}'}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: plain}}
";
const KEEPS: &str = "\
enabled: spec.db.enabled
namespace: NS
inputs: [db.size]
dataPolicy: db.dataPolicy
generated: [{name: word, password: 24}]
sources: [{manifests: manifests/db.yaml}]
";

#[tokio::test]
async fn secrets_are_made_once_and_go_only_when_that_is_asked_for() {
    let lab = Lab::new("data", &[("components/db.yaml", KEEPS), ("manifests/db.yaml", DATA)]);
    let engine = lab.engine().await;
    let on = json!({"db": {"enabled": true}});
    pass(&engine, &on, &[]).await;
    let word = || lab.kubectl("get secret given -o jsonpath='{.data.k}'");
    let first = word();
    assert_eq!(first.len(), 32, "24 letters in base64");
    // Another engine renders it for another size.
    pass(&lab.engine().await, &json!({"db": {"enabled": true, "size": 2}}), &[]).await;
    assert_eq!(word(), first);
    pass(&engine, &json!({"db": {"enabled": false}}), &[]).await;
    assert!(!lab.has("cm/plain") && lab.has("secret/given"), "data is retained");
    pass(&engine, &on, &[]).await;
    assert_eq!(word(), first);
    pass(&engine, &json!({"db": {"enabled": false, "dataPolicy": "Delete"}}), &[]).await;
    assert!(!lab.has("secret/given") && !lab.has("secret/ks-installer-generated-db"));
}

const STATEFUL: &str = "\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 0
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
";

#[tokio::test]
async fn claims_of_a_stateful_set_follow_the_data_policy() {
    let component = "enabled: spec.on\nnamespace: NS\nreadyWithinSeconds: 60\nsources: [{manifests: manifests/db.yaml}]\n";
    let lab = Lab::new("claims", &[("components/db.yaml", component), ("manifests/db.yaml", STATEFUL)]);
    for (policy, is_left) in [("Retain", true), ("Delete", false)] {
        let engine = lab.engine().await;
        let told = Told::default();
        let on = json!({"on": true});
        let waits = |told: &Told| matches!(told.last("db"), Some(Phase::Progressing(_)));
        pass_until(&engine, &on, &told, "a wait for the pods", waits).await;
        // The test acts as the controllers.
        lab.kubectl("patch sts db --subresource=status --type=merge -p '{\"status\":{\"observedGeneration\":9,\"replicas\":0}}'");
        pass(&engine, &on, &[]).await;
        for name in ["data-db-0", "data-db-x", "other-db-0"] {
            lab.apply(&format!(
                "{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: {name}, namespace: NS}}, \
                 spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}}}"
            ));
            // No controller removes the protection of claims in this test.
            lab.kubectl(&format!(
                "patch pvc {name} --type=merge -p '{{\"metadata\":{{\"finalizers\":null}}}}'"
            ));
        }
        pass(&engine, &json!({"on": false, "dataPolicy": policy}), &[]).await;
        assert!(!lab.has("sts/db"));
        assert_eq!(lab.has("pvc/data-db-0"), is_left, "{policy}");
        assert!(lab.has("pvc/data-db-x") && lab.has("pvc/other-db-0"), "of others");
    }
}

/// A Deployment with a controller, which is deleted later, and its kind.
const CONTROLLED: &str = "\
{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, finalizers: [example.com/hold]}, spec: {replicas: 0, selector: {matchLabels: {a: b}}, \
 template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}
";
const CONTROLLER: &str = "\
enabled: spec.on
namespace: NS
remove:
  withinSeconds: 20
  traces:
  - {apiVersion: v1, kind: Namespace, domain: NS.example.com}
  - {apiVersion: rbac.authorization.k8s.io/v1, kind: Role, deletedWith: [NS.example.com/template, NS.example.com/sum]}
sources: [{manifests: manifests/things.yaml}]
";

fn thing_definition() -> String {
    definition("NS.example.com", "Thing", "Namespaced")
}

/// A lab in which this component is ready.
async fn controlled(name: &str) -> Lab {
    let manifests = format!("{}---\n{CONTROLLED}", thing_definition());
    let lab =
        Lab::new(name, &[("components/things.yaml", CONTROLLER), ("manifests/things.yaml", &manifests)]);
    let (on, told) = (json!({"on": true}), Told::default());
    let waits = |told: &Told| matches!(told.last("things"), Some(Phase::Progressing(_)));
    pass_until(&lab.engine().await, &on, &told, "a wait for the Deployment", waits).await;
    let status = "{\"status\":{\"observedGeneration\":9,\"replicas\":0}}";
    lab.kubectl(&format!("patch deployment d --subresource=status --type=merge -p '{status}'"));
    assert_eq!(pass(&lab.engine().await, &on, &[]).await.last("things"), Some(Phase::Ready));
    lab
}

const THING: &str = "{apiVersion: NS.example.com/v1beta1, kind: Thing, metadata: {name: again, namespace: NS, finalizers: [example.com/busy]}}";

#[tokio::test]
async fn what_controllers_leave_goes_with_them() {
    let lab = controlled("traces").await;
    let role = "apiVersion: rbac.authorization.k8s.io/v1, kind: Role";
    lab.apply("{apiVersion: v1, kind: Namespace, metadata: {name: NS-project, labels: {a: b}}}");
    let (off, told, is_held) = (json!({"on": false}), Told::default(), std::cell::Cell::new(true));
    let engine = lab.engine().await;
    pass_until(&engine, &off, &told, "the end of the component", |told| {
        let is_going = is_held.get()
            && !lab.kubectl("get deployment d -o jsonpath='{.metadata.deletionTimestamp}'").is_empty();
        if is_going {
            // The controller re-creates an object that it needs, and then ends.
            lab.apply(THING);
            lab.kubectl(
                "patch ns traces-project --type=merge -p '{\"metadata\":{\"finalizers\":[\"finalizers.traces.example.com/x\",\"example.com/y\"],\
                 \"labels\":{\"traces.example.com/of\":\"w\"},\"annotations\":{\"a.traces.example.com/b\":\"c\"}}}'",
            );
            for metadata in [
                "name: one, labels: {NS.example.com/template: 'true'}",
                "name: two, annotations: {NS.example.com/sum: '[]'}",
                "name: theirs, labels: {a: b}",
            ] {
                lab.apply(&format!("{{{role}, metadata: {{namespace: NS-project, {metadata}}}, rules: []}}"));
            }
            lab.kubectl("patch deployment d --type=merge -p '{\"metadata\":{\"finalizers\":null}}'");
            is_held.set(false);
        }
        told.last("things") == Some(Phase::Removed)
    })
    .await;
    assert!(!lab.has("crd/things.traces.example.com"));
    let project = lab.kubectl("get ns traces-project -o jsonpath='{.metadata.finalizers} {.metadata.labels} {.metadata.annotations}'");
    assert!(project.starts_with(r#"["example.com/y"]"#) && project.contains(r#""a":"b""#), "{project}");
    assert!(!project.contains("traces.example.com"), "{project}");
    assert_eq!(lab.kubectl("-n traces-project get roles -o name"), "role.rbac.authorization.k8s.io/theirs");
    lab.kubectl("patch ns traces-project --type=merge -p '{\"metadata\":{\"finalizers\":null}}'");
}

/// The state after a removal by an older program, or after a user has deleted the controller.
#[tokio::test]
async fn finalizers_of_a_controller_that_is_gone_are_not_waited_for() {
    let lab = controlled("unattended").await;
    lab.apply(THING);
    lab.kubectl("patch deployment d --type=merge -p '{\"metadata\":{\"finalizers\":null}}'");
    lab.kubectl("delete deployment d");
    let told = pass(&lab.engine().await, &json!({"on": false}), &[]).await;
    assert_eq!(told.last("things"), Some(Phase::Removed));
    assert!(!lab.has("crd/things.unattended.example.com"));
}

/// A pod with the labels of the Deployment. Its owners decide whether it belongs to the Deployment or to a user.
fn apply_pod(lab: &Lab, name: &str, owners: &str) {
    lab.apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: NS}}");
    lab.apply(&format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: NS, labels: {{a: b, pod-template-hash: 5c}}, \
         ownerReferences: [{owners}], finalizers: [example.com/works]}}, \
         spec: {{automountServiceAccountToken: false, containers: [{{name: c, image: i}}]}}}}"
    ));
}

const OF_THE_DEPLOYMENT: &str = "{apiVersion: apps/v1, kind: ReplicaSet, name: d-5c, uid: 6f0c5a3e-7c1e-4a52-9a3b-1f2d3c4b5a69, controller: true}";

/// Who deletes a Deployment that its pod outlives.
enum Deletion {
    Removal,
    User,
    /// Its component stays, but no longer contains the Deployment.
    Prune,
}

/// A pod can outlive its Deployment, and its controller works until the pod ends.
#[tokio::test]
async fn finalizers_stay_until_the_pods_of_a_controller_have_ended() {
    // With custom resources left, the removal waits for the pod at its first step, otherwise after the workloads.
    for (name, objects, deletion) in [
        ("outlived-objects", THING, Deletion::Removal),
        ("outlived-marks", "", Deletion::Removal),
        ("outlived-by-user", THING, Deletion::User),
        ("outlived-by-prune", "", Deletion::Prune),
    ] {
        let lab = controlled(name).await;
        apply_pod(&lab, "p", OF_THE_DEPLOYMENT);
        // The component does not create this one, so the removal does not wait for it.
        apply_pod(&lab, "theirs", "");
        lab.apply("{apiVersion: v1, kind: Namespace, metadata: {name: NS-project}}");
        let (on, off) = (json!({"on": true}), json!({"on": false}));
        let unhold =
            || lab.kubectl("patch deployment d --type=merge -p '{\"metadata\":{\"finalizers\":null}}'");
        match deletion {
            Deletion::Removal => {
                // This attempt is interrupted before the Deployment is gone.
                let is_going = |_: &Told| {
                    !lab.kubectl("get deployment d -o jsonpath='{.metadata.deletionTimestamp}'").is_empty()
                };
                let what = "the deletion of the Deployment";
                pass_until(&lab.engine().await, &off, &Told::default(), what, is_going).await;
                unhold();
            }
            Deletion::User => {
                unhold();
                lab.kubectl("delete deployment d");
            }
            Deletion::Prune => {
                unhold();
                lab.payload_of(&[("manifests/things.yaml", &thing_definition())]);
                let engine = lab.engine().await;
                assert_eq!(pass(&engine, &on, &[]).await.last("things"), Some(Phase::Ready));
                assert_eq!(engine.plan(&on).await, []);
                let plan = format!("{:?}", engine.plan(&off).await);
                assert!(plan.contains("CustomResourceDefinition") && !plan.contains("Deployment"), "{plan}");
            }
        }
        if !objects.is_empty() {
            lab.apply(objects);
        }
        let mark = format!("{{\"metadata\":{{\"finalizers\":[\"finalizers.{name}.example.com/x\"]}}}}");
        lab.kubectl(&format!("patch ns {name}-project --type=merge -p '{mark}'"));
        lab.kubectl("delete pod p --wait=false");
        assert!(!lab.has("deployment/d") && lab.has("pod/p"));

        let (engine, told) = (lab.engine().await.with_patience(Duration::from_secs(1)), Told::default());
        let named = format!("Pod {name}/p has not ended");
        pass_until(&engine, &off, &told, "the name of the pod", |told| {
            told.failure("things").is_some_and(|text| text.contains(&named))
        })
        .await;
        let finalizers =
            |what: &str| lab.kubectl(&format!("get {what} -o jsonpath='{{.metadata.finalizers}}'"));
        assert!(finalizers(&format!("ns/{name}-project")).contains("example.com/x"));
        if !objects.is_empty() {
            assert_eq!(finalizers(&format!("things.{name}.example.com/again")), r#"["example.com/busy"]"#);
        }
        assert!(lab.has("secret/ks-installer-inventory-things"));

        lab.kubectl("patch pod p --type=merge -p '{\"metadata\":{\"finalizers\":null}}'");
        let told = pass(&lab.engine().await, &off, &[]).await;
        assert_eq!(told.last("things"), Some(Phase::Removed));
        assert!(!lab.has(&format!("crd/things.{name}.example.com")));
        assert_eq!(finalizers(&format!("ns/{name}-project")), "");
        assert!(lab.has("pod/theirs"));
    }
}

#[tokio::test]
async fn a_pod_that_does_not_end_does_not_stop_a_removal_without_finalizers_and_marks() {
    let lab = controlled("nothing-to-strip").await;
    apply_pod(&lab, "p", OF_THE_DEPLOYMENT);
    lab.kubectl("patch deployment d --type=merge -p '{\"metadata\":{\"finalizers\":null}}'");
    let told =
        pass(&lab.engine().await.with_patience(Duration::from_secs(1)), &json!({"on": false}), &[]).await;
    assert_eq!(told.last("things"), Some(Phase::Removed));
    assert!(!told.failed_with("things", ""));
    assert!(!lab.has("crd/things.nothing-to-strip.example.com") && lab.has("pod/p"));
}

#[tokio::test]
async fn a_kind_that_does_not_go_names_what_is_left_of_it() {
    let manifests = format!(
        "{}---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{name: held, finalizers: [example.com/hold]}}}}",
        thing_definition()
    );
    let component = "enabled: spec.on\nnamespace: NS\nremove: {withinSeconds: 10}\nsources: [{manifests: manifests/a.yaml}]\n";
    let lab = Lab::new("left", &[("components/a.yaml", component), ("manifests/a.yaml", &manifests)]);
    let engine = lab.engine().await;
    pass(&engine, &json!({"on": true}), &[]).await;
    let (told, is_held) = (Told::default(), std::cell::Cell::new(true));
    pass_until(&engine, &json!({"on": false}), &told, "the name of what is left", |told| {
        if is_held.get() && !lab.kubectl("get cm held -o jsonpath='{.metadata.deletionTimestamp}'").is_empty() {
            lab.apply(THING);
            lab.kubectl("patch cm held --type=merge -p '{\"metadata\":{\"finalizers\":null}}'");
            is_held.set(false);
        }
        told.failure("a").is_some_and(|text| {
            let expected = "FinalizerStuck: CustomResourceDefinition things.left.example.com waits for its objects: Thing left/again waits for \
                its finalizer example.com/busy";
            text.starts_with(expected)
        })
    })
    .await;
    lab.kubectl("patch things.left.example.com again --type=merge -p '{\"metadata\":{\"finalizers\":null}}'");
}
