#!/bin/bash
# Calling the function of a hook that fits each binding context.

# Names of functions that may handle the current binding context, a line each, the best first.
hook::_handlers() {
  context::jq -r '
    def kubernetes(names): "__on_kubernetes::\(.binding)" as $base | ($base + "::" + names), $base;
    if .type == null then (if .binding == "onStartup" then "__on_startup" else empty end)
    elif .type == "Synchronization" then kubernetes("synchronization")
    elif .type == "Event" and .watchEvent == "Added" then kubernetes("added", "added_or_modified")
    elif .type == "Event" and .watchEvent == "Modified" then kubernetes("modified", "added_or_modified")
    elif .type == "Event" then kubernetes("deleted")
    elif .type == "Group" then "__on_group::\(.groupName)"
    elif .type == "Conversion" then "__on_conversion::\(.binding)" as $base
      | ($base + "::" + ("\(.fromVersion)::\(.toVersion)" | gsub("/"; "."))), $base
    else "__on_\(.type | ascii_downcase)::\(.binding)"
    end, "__main__"'
}

# hook::run "$@": prints the configuration for --config, otherwise handles each binding context in a subshell.
hook::run() {
  local count handler found
  local -a handlers
  if [[ "${1:-}" == "--config" ]]; then
    __config__
    exit 0
  fi
  count=$(context::global::jq length)
  for ((BINDING_CONTEXT_CURRENT_INDEX = 0; BINDING_CONTEXT_CURRENT_INDEX < count; BINDING_CONTEXT_CURRENT_INDEX++)); do
    export BINDING_CONTEXT_CURRENT_INDEX
    BINDING_CONTEXT_CURRENT_BINDING=$(context::jq -r .binding)
    export BINDING_CONTEXT_CURRENT_BINDING
    # A name may have blanks or asterisks in it.
    mapfile -t handlers < <(hook::_handlers)
    found=""
    for handler in "${handlers[@]}"; do
      if declare -F "$handler" > /dev/null; then
        found=$handler
        break
      fi
    done
    if [[ -z "$found" ]]; then
      echo "hook::run: no handler for '$BINDING_CONTEXT_CURRENT_BINDING'; one of these is needed: ${handlers[*]}" >&2
      exit 1
    fi
    ("$found")
  done
}
