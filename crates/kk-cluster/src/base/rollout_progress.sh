# Prints how many pods of a workload have the template that was last applied, and how many pods are available. Prints nothing
# until the controller has observed that template. Pods of a new DaemonSet all exist at once, and become available one after the
# other.
progress() { # NAMESPACE KIND/NAME
    kubectl -n "$1" get "$2" -o go-template='{{if eq .metadata.generation .status.observedGeneration}}{{or .status.updatedNumberScheduled .status.updatedReplicas 0}} {{or .status.numberAvailable .status.availableReplicas 0}}{{end}}'
}

# Runs a command until it succeeds, or until for $1 seconds no further pod of the workload was updated or became available. The
# duration of a rollout grows with the number of nodes. The last messages of the command are in wait.err.
while_it_progresses() { # SECONDS NAMESPACE KIND/NAME COMMAND...
    longest=$1 in_namespace=$2 workload=$3 most=0
    shift 3
    until=$(($(kk_uptime) + longest))
    until "$@" >/dev/null 2>wait.err </dev/null; do
        count=$(progress "$in_namespace" "$workload" 2>/dev/null </dev/null | awk '{ print $1 + $2 }')
        count=${count:-0}
        now=$(kk_uptime)
        if [ "$count" -gt "$most" ]; then
            most=$count until=$((now + longest))
        fi
        [ "$now" -lt $until ] || return 1
        sleep 0.5 2>/dev/null || sleep 1
    done
}
