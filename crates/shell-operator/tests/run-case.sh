#!/bin/bash
# run-case.sh OPERATOR CASE OUT PORT: runs the hooks of one case under OPERATOR against the cluster of $KUBECONFIG and keeps
# every binding context as OUT/<nr>-<hook>.json in order of arrival, and what after.sh prints as OUT/after.txt. $KUBECTL is kubectl.
# In the steps `k` is kubectl in the case's namespace, `reach N` waits until there are N contexts, `queued N` until the queue
# has N tasks, and `settle` until 1.5 s passed without a new context.
set -u
OP=$1 C=$2 O=$3 PORT=$4 KC=$KUBECTL; W=$(mktemp -d) NS=rec-$(basename "$2")
export O NS KC PORT
k() { $KC -n "$NS" "$@"; }
count() { find "$O" -name '[0-9]*.json' | wc -l; }
# shellcheck disable=SC2034
settle() { local n m t; n=$(count); for t in 1 2 3 4; do sleep 1.5; m=$(count); [ "$n" = "$m" ] && break; n=$m; done; }
within() { for _ in $(seq 600); do "$@" && return; sleep 0.1; done; echo "never: $*" >&2; return 1; }
reached() { [ "$(count)" -ge "$1" ]; }
# shellcheck disable=SC2034
reach() { within reached "$1"; }
has_queued() { curl -s "http://127.0.0.1:$PORT/metrics" | grep -q "^shell_operator_tasks_queue_length{queue=\"main\"} $1\$"; }
# shellcheck disable=SC2034
queued() { within has_queued "$1"; }
is_ready() { curl -sf -m1 "http://127.0.0.1:$PORT/readyz" > /dev/null; }
export -f k count settle within
mkdir -p "$W/hooks" "$W/tmp" "$O"; $KC create ns "$NS" > /dev/null
for y in "$C"/*.yaml; do
  h=$(basename "$y" .yaml); sed "s/@NS@/$NS/g" "$y" > "$W/$h.cfg"; [ -e "$C/$h.body" ] && cp "$C/$h.body" "$W/$h.body"
  cat > "$W/hooks/$h.sh" <<X
#!/bin/bash
[ "\${1:-}" = --config ] && exec cat $W/$h.cfg
n=\$( (flock 9; i=\$(cat $W/n 2>/dev/null || echo 0); echo \$((i+1)) > $W/n; printf %03d \$i) 9>$W/lock)
cp "\$BINDING_CONTEXT_PATH" $O/.\$n; mv $O/.\$n $O/\$n-$h.json
[ -e $W/$h.body ] && . $W/$h.body
exit 0
X
  chmod +x "$W/hooks/$h.sh"
done
[ -e "$C/before.sh" ] && . "$C/before.sh" > /dev/null
$OP start --hooks-dir "$W/hooks" --tmp-dir "$W/tmp" --listen-port "$PORT" --listen-address 127.0.0.1 --debug-unix-socket "$W/sock" > "$O/log" 2>&1 &
P=$!
trap 'kill $P 2> /dev/null; rm -rf "$W"' EXIT
within is_ready
settle
[ -e "$C/steps.sh" ] && (. "$C/steps.sh") > /dev/null 2> "$O/steps.err"
settle
[ -e "$C/after.sh" ] && (. "$C/after.sh") > "$O/after.txt" 2>&1
kill $P; wait $P; echo "exit $?" > "$O/exit"
