#!/bin/bash
# Maintains the Secret `htpasswd` of the operator's namespace: one line for each User (auth.example.com/v1). Mounted into a proxy,
# it is the list of the users who have access.
#
# Each run writes the whole Secret from the snapshot: created, changed, deleted and missed Users are handled the same way.
source "${FRAMEWORK_DIR:-}/shell_lib.sh"

__config__() {
  cat <<'EOF'
configVersion: v1
kubernetes:
- name: users
  apiVersion: auth.example.com/v1
  kind: User
  group: users
  jqFilter: '{name: .metadata.name, hash: .spec.passwordHash}'
  keepFullObjectsInMemory: false
EOF
}

__on_group::users() {
  context::jq --arg namespace "$SHELL_OPERATOR_NAMESPACE" '{
    operation: "CreateOrUpdate",
    object: {
      apiVersion: "v1",
      kind: "Secret",
      metadata: {name: "htpasswd", namespace: $namespace},
      stringData: {htpasswd: ([.snapshots.users[].filterResult | "\(.name):\(.hash)\n"] | add // "")}
    }
  }' >>"$KUBERNETES_PATCH_PATH"
}

hook::run "$@"
