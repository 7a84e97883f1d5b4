//! Tests the monitoring of etcd. It is an input of Prometheus and not a single step, so it is added and removed at any time.

use ks_installer::engine::Phase;
use serde_json::json;

use crate::cluster::audit;
use crate::cluster::lab::{Lab, Told, pass, pass_until};

const COMPONENT: &str = "\
enabled: spec.monitoring.enabled
inputs: [monitoring, etcd]
namespace: NS
requires:
- apiVersion: v1
  kind: Secret
  namespace: NS
  name: kube-etcd-client-certs
  when: spec.etcd.monitoring
  hint: make it of the certificates of etcd's clients
sources:
- manifests: manifests/prometheus.yaml
- manifests: manifests/etcd.yaml
  when: spec.etcd.monitoring
";
const PROMETHEUS: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: prometheuses.NS.example.com}
spec:
  group: NS.example.com
  scope: Namespaced
  names: {kind: Prometheus, plural: prometheuses, singular: prometheus}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: NS.example.com/v1
kind: Prometheus
metadata: {name: k8s}
spec:
  replicas: {{ spec.monitoring.prometheus.replicas | default(1) }}
  {% if spec.etcd.monitoring %}
  secrets: [kube-etcd-client-certs]
  {% endif %}
";
const ETCD: &str = "{apiVersion: v1, kind: Service, metadata: {name: etcd}, spec: {ports: [{port: 2379}]}}\n";

#[tokio::test]
async fn it_may_be_switched_on_later_and_off_again() {
    let files = [
        ("components/monitoring.yaml", COMPONENT),
        ("manifests/prometheus.yaml", PROMETHEUS),
        ("manifests/etcd.yaml", ETCD),
    ];
    let lab = Lab::new("etcd-mon", &files);
    let engine = lab.engine().await;
    let spec = |etcd: bool| json!({"monitoring": {"enabled": true}, "etcd": {"monitoring": etcd}});
    let secrets =
        || lab.kubectl("get prometheuses.etcd-mon.example.com k8s -o jsonpath='{.spec.secrets[0]}'");
    pass(&engine, &spec(false), &[]).await;
    assert_eq!(secrets(), "");

    // The Secret is not mounted while it is missing, because pods would not start.
    let told = Told::default();
    let named =
        |told: &Told| told.failure("monitoring").is_some_and(|text| text.contains("kube-etcd-client-certs"));
    pass_until(&engine, &spec(true), &told, "the Secret's name", named).await;
    assert_eq!(secrets(), "");
    lab.kubectl("create secret generic kube-etcd-client-certs");
    let before = audit::requests("etcd-mon").len();
    assert_eq!(pass(&engine, &spec(true), &[]).await.last("monitoring"), Some(Phase::Ready));
    assert_eq!(secrets(), "kube-etcd-client-certs");
    let writes = audit::writes(&audit::requests("etcd-mon")[before..]);
    assert_eq!(writes, ["patch prometheuses/k8s", "patch services/etcd"]);

    pass(&engine, &spec(false), &[]).await;
    assert_eq!(secrets(), "");
    assert!(!lab.has("service/etcd") && lab.has("secret/kube-etcd-client-certs"));
}
