//! How the operator shows who it is.

use crate::cluster::control_plane::shared;
use crate::cluster::operator::Setup;

#[test]
fn the_api_server_takes_a_client_certificate_of_x509_version_1() {
    let plane = shared();
    plane.kubectl("create ns version-1");
    plane.kubectl("-n version-1 create configmap a --from-literal=k=v");
    plane.kubectl("-n version-1 create role reader --verb=list,watch --resource=configmaps");
    plane.kubectl("-n version-1 create rolebinding nobody --role=reader --user=nobody");
    let config = "configVersion: v1\nkubernetes:\n- {name: cms, apiVersion: v1, kind: ConfigMap, \
                  namespace: {nameSelector: {matchNames: [version-1]}}, jqFilter: .data.k}";
    let setup = Setup::new(plane).kubeconfig(plane.version_1_kubeconfig());
    let operator = setup.hook("h", config, "keep").start();
    operator.wait_ready();
    assert_eq!(operator.all_contexts("h")[0]["objects"][0]["filterResult"], "v");
}
