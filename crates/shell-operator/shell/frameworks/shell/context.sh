#!/bin/bash
# Reading binding contexts. Paths are written with dots: `object.metadata.name`, `objects.0.filterResult`,
# `object.metadata.labels."app.kubernetes.io/name"`.

# jq over all binding contexts of the run.
context::global::jq() {
  jq "$@" "$BINDING_CONTEXT_PATH"
}

# jq over the current binding context.
context::jq() {
  context::global::jq ".[${BINDING_CONTEXT_CURRENT_INDEX:?}]" | jq "$@"
}

# A dotted path as a jq path: numbers without quotes are positions, everything else is a key.
context::_path() {
  jq -nr --arg path "$1" '
    [$path | match("\"([^\"]*)\"|[^.]+"; "g")
      | if .captures[0].string != null then .captures[0].string
        elif .string | test("^[0-9]+$") then .string | tonumber
        else .string end]
    | tojson'
}

# context::get [--required] PATH: the value, strings without quotes. With --required a missing value is an error.
context::get() {
  local required="" path value
  if [[ "$1" == "--required" ]]; then required=yes; shift; fi
  path=$(context::_path "$1")
  if [[ -n "$required" ]] && ! context::has "$1"; then
    echo "context::get: there is no '$1' in the binding context" >&2
    return 1
  fi
  value=$(context::jq -r --argjson path "$path" 'getpath($path)')
  echo "$value"
}

# context::has PATH: whether the key exists, whatever its value.
context::has() {
  local path
  path=$(context::_path "$1")
  context::jq -e --argjson path "$path" '
    $path[:-1] as $parent | $path[-1] as $key
    | (try getpath($parent) catch null)
    | if type == "object" then has($key | tostring)
      elif type == "array" then ($key | type == "number") and $key < length
      else false end' > /dev/null
}

context::_equals() {
  local path
  path=$(context::_path "$1")
  context::jq -e --argjson path "$path" --argjson value "$2" 'getpath($path) == $value' > /dev/null
}

# Whether the value at PATH is true, false or null.
context::is_true() { context::_equals "$1" true; }
context::is_false() { context::_equals "$1" false; }
context::is_null() { context::_equals "$1" null; }
