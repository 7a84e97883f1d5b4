#!/bin/bash
# Two rules for Deployments in namespaces that have the label `policy.example.com/enforce: "yes"`: images must name a fixed
# version, and pods get no token for the API unless they request one.
source "${FRAMEWORK_DIR:-}/shell_lib.sh"

__config__() {
  cat <<'EOF'
configVersion: v1
kubernetesValidating:
- name: images.policy.example.com
  namespace: {labelSelector: {matchLabels: {policy.example.com/enforce: "yes"}}}
  rules:
  - {apiGroups: [apps], apiVersions: [v1], resources: [deployments], operations: [CREATE, UPDATE], scope: Namespaced}
kubernetesMutating:
- name: tokens.policy.example.com
  namespace: {labelSelector: {matchLabels: {policy.example.com/enforce: "yes"}}}
  rules:
  - {apiGroups: [apps], apiVersions: [v1], resources: [deployments], operations: [CREATE, UPDATE], scope: Namespaced}
EOF
}

__on_validating::images.policy.example.com() {
  context::jq '
    def is_fixed: test("@sha256:|:[^/]+$") and (endswith(":latest") | not);
    [.review.request.object.spec.template.spec | (.initContainers, .containers)[]?.image | select(is_fixed | not)]
    | if . == [] then {allowed: true}
      else {allowed: false, message: "images need a fixed version: \(join(", "))"}
      end' >"$ADMISSION_RESPONSE_PATH"
}

__on_mutating::tokens.policy.example.com() {
  context::jq '
    .review.request.object.spec.template.spec
    | if has("automountServiceAccountToken") then {allowed: true}
      else
        {
          allowed: true,
          patch: (
            [{op: "add", path: "/spec/template/spec/automountServiceAccountToken", value: false}] | tojson | @base64
          )
        }
      end' >"$ADMISSION_RESPONSE_PATH"
}

hook::run "$@"
