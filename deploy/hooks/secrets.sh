#!/bin/bash
# Copies every Secret of the operator's namespace that has the label `copy.example.com/source: "yes"` into all namespaces that
# have the label `copy.example.com/target: "yes"`. Copies that a user changes or deletes are restored; copies without a source or
# a target are deleted.
#
# One group: after any change, the existing copies are compared with the wanted ones. Other Secrets with the same name are left
# unchanged.
source "${FRAMEWORK_DIR:-}/shell_lib.sh"

__config__() {
  cat <<EOF
configVersion: v1
kubernetes:
- name: sources
  apiVersion: v1
  kind: Secret
  group: copies
  namespace: {nameSelector: {matchNames: ["${SHELL_OPERATOR_NAMESPACE:-shell-operator}"]}}
  labelSelector: {matchLabels: {copy.example.com/source: "yes"}}
  jqFilter: '{name: .metadata.name, type, data}'
  keepFullObjectsInMemory: false
- name: targets
  apiVersion: v1
  kind: Namespace
  group: copies
  labelSelector: {matchLabels: {copy.example.com/target: "yes"}}
  jqFilter: '.metadata | {name, ends: has("deletionTimestamp")}'
  keepFullObjectsInMemory: false
- name: copies
  apiVersion: v1
  kind: Secret
  group: copies
  labelSelector: {matchLabels: {copy.example.com/copy: "yes"}}
  jqFilter: '{namespace: .metadata.namespace, name: .metadata.name, type, data}'
  keepFullObjectsInMemory: false
EOF
}

__on_group::copies() {
  context::jq '
    .snapshots
    | [.sources[].filterResult] as $sources
    | [.targets[].filterResult | select(.ends | not) | .name] as $targets
    | [.copies[].filterResult] as $copies
    | [$targets[] as $namespace | $sources[] | {namespace: $namespace} + .] as $wanted
    | def same($list): . as $one | any($list[]; .namespace == $one.namespace and .name == $one.name);
    (
      ($wanted - $copies)[]
      | {
          operation: (if same($copies) then "CreateOrUpdate" else "CreateIfNotExists" end),
          object: {
            apiVersion: "v1",
            kind: "Secret",
            metadata: {namespace, name, labels: {"copy.example.com/copy": "yes"}},
            type,
            data
          }
        }
    ),
    (
      $copies[]
      | select(same($wanted) | not)
      | {operation: "DeleteInBackground", apiVersion: "v1", kind: "Secret", namespace, name}
    )' >>"$KUBERNETES_PATCH_PATH"
}

hook::run "$@"
