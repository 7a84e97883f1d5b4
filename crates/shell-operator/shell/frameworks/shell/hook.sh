#!/bin/bash
# Calling the function of a hook that fits each binding context.

# Names of functions that may handle the current binding context, the best first.
hook::_handlers() {
  local binding type event kube
  binding=$BINDING_CONTEXT_CURRENT_BINDING
  type=$(context::jq -r '.type // ""')
  kube="__on_kubernetes::$binding"
  case "$type" in
    "") [[ "$binding" == onStartup ]] && echo __on_startup ;;
    Synchronization) echo "$kube::synchronization" "$kube" ;;
    Event)
      event=$(context::jq -r .watchEvent)
      case "$event" in
        Added) echo "$kube::added" "$kube::added_or_modified" "$kube" ;;
        Modified) echo "$kube::modified" "$kube::added_or_modified" "$kube" ;;
        Deleted) echo "$kube::deleted" "$kube" ;;
      esac ;;
    Group) echo "__on_group::$(context::jq -r .groupName)" ;;
    Schedule) echo "__on_schedule::$binding" ;;
    Validating) echo "__on_validating::$binding" ;;
    Mutating) echo "__on_mutating::$binding" ;;
    Conversion)
      echo "__on_conversion::$binding::$(context::jq -r '"\(.fromVersion)::\(.toVersion)" | gsub("/"; ".")')" \
        "__on_conversion::$binding" ;;
  esac
  echo __main__
}

# hook::run "$@": prints the configuration for --config, otherwise handles each binding context in a subshell.
hook::run() {
  local count handler handlers found
  if [[ "${1:-}" == "--config" ]]; then
    __config__
    exit 0
  fi
  count=$(context::global::jq length)
  for ((BINDING_CONTEXT_CURRENT_INDEX = 0; BINDING_CONTEXT_CURRENT_INDEX < count; BINDING_CONTEXT_CURRENT_INDEX++)); do
    export BINDING_CONTEXT_CURRENT_INDEX
    BINDING_CONTEXT_CURRENT_BINDING=$(context::jq -r .binding)
    export BINDING_CONTEXT_CURRENT_BINDING
    handlers=$(hook::_handlers)
    found=""
    for handler in $handlers; do
      if declare -F "$handler" > /dev/null; then
        found=$handler
        break
      fi
    done
    if [[ -z "$found" ]]; then
      echo "hook::run: no handler for '$BINDING_CONTEXT_CURRENT_BINDING'; one of these is needed: ${handlers//$'\n'/ }" >&2
      exit 1
    fi
    ("$found")
  done
}
