#!/bin/bash
# Prints the name of every pod that is created: the least a hook can be.
set -euo pipefail

if [[ "${1:-}" == --config ]]; then
  cat <<'EOF'
configVersion: v1
kubernetes:
- name: pods
  apiVersion: v1
  kind: Pod
  executeHookOnEvent: [Added]
  executeHookOnSynchronization: false
  jqFilter: '.metadata | {namespace, name}'
  keepFullObjectsInMemory: false
EOF
  exit
fi

jq -r '.[] | .filterResult | "Pod \(.namespace)/\(.name) is new"' "$BINDING_CONTEXT_PATH"
