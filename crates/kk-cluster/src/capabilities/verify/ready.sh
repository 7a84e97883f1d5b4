# Waits by watches of the API, and shows what is not ready: its state, its last events and its last words.
# shellcheck disable=SC2154 # absent, names of nodes that did not answer, and own, those of this run, stand before this script
# Again until it succeeds: an API server that restarts answers nobody for a while, and then not everything.
within_300_s() {
    until=$(($(kk_uptime) + 300))
    until "$@" >/dev/null 2>wait.err; do
        [ "$(kk_uptime)" -lt $until ] || return 1
        sleep 0.5 2>/dev/null || sleep 1
    done
}

# Prints what a question was answered with at last.
answer() {
    within_300_s written "$@" && cat answer && return
    cat wait.err >&2
    return 1
}

written() {
    "$@" >answer
}

nodes_are_ready() {
    within_300_s kubectl wait --for=condition=Ready node "$@" --timeout=30s && return 0
    cat wait.err >&2
    kubectl get nodes "$@" >&2
    kk_fail "after 300 s these nodes are not Ready:$(kubectl get nodes "$@" --no-headers | awk '$2 !~ /^Ready/ { printf " %s", $1 }')"
}

# The kubelet shows the API its static pods. It may be late with that, and what is not there cannot be watched.
static_pods_are_ready() { # POD...
    within_300_s kubectl -n kube-system wait --for=condition=Ready --timeout=30s pod "$@" && return 0
    cat wait.err >&2
    kubectl -n kube-system get pods "$@" -o wide >&2 || :
    kk_fail "after 300 s not all of these pods are ready: $*"
}

list_nodes() {
    kubectl get nodes -o go-template='{{range .items}}{{.metadata.name}} {{range .status.conditions}}{{if eq .type "Ready"}}{{.status}}{{end}}{{end}}{{"\n"}}{{end}}' >nodes.list
}

# Nodes that are none of this run and are not Ready: what is theirs is not waited for, as little as what is of nodes that did not
# answer. A lost one, or one of somebody else, would keep every run from its end.
leave_out_others() {
    within_300_s list_nodes || {
        cat wait.err >&2
        kk_fail "the API does not list its nodes"
    }
    absent=$absent$(KK_OWN=" $own " awk 'index(ENVIRON["KK_OWN"], " " $1 " ") == 0 && $2 != "True" { printf " %s", $1 }' nodes.list)
}

selector() { # NAMESPACE KIND/NAME
    labels=$(kubectl -n "$1" get "$2" -o go-template='{{range $k, $v := .spec.selector.matchLabels}}{{$k}}={{$v}},{{end}}') &&
        echo "${labels%,}"
}

# The pods of a workload on nodes that are not $absent: node, name, whether it is ready, and its addresses.
present_pods() { # NAMESPACE SELECTOR
    kubectl -n "$1" get pods -l "$2" -o go-template='{{range .items}}{{if and .spec.nodeName (not .metadata.deletionTimestamp)}}{{.spec.nodeName}} {{.metadata.name}} {{range .status.conditions}}{{if eq .type "Ready"}}{{.status}}{{end}}{{end}}{{range .status.podIPs}} {{.ip}}{{end}}{{"\n"}}{{end}}{{end}}' >all.pods &&
        KK_ABSENT=" $absent " awk 'index(ENVIRON["KK_ABSENT"], " " $1 " ") == 0' all.pods
}

# Whether its controller has seen what was applied last, and a Deployment has pods of it. While a node is down a DaemonSet may never
# have all of them.
is_observed() { # NAMESPACE KIND/NAME
    kubectl -n "$1" get "$2" -o go-template='{{if eq .metadata.generation .status.observedGeneration}}{{if eq .kind "Deployment"}}{{with .status.updatedReplicas}}observed{{end}}{{else}}observed{{end}}{{end}}' |
        grep -q observed
}

present_are_ready() { # NAMESPACE KIND/NAME SELECTOR AT-LEAST
    is_observed "$1" "$2" && present_pods "$1" "$3" >present &&
        KK_LEAST=$4 awk '$3 != "True" { bad = 1 } END { exit bad || NR < ENVIRON["KK_LEAST"] }' present
}

# The kubelet starts what has ended for what it lacked only after 10, 20, 40 s, up to 5 minutes. What takes the place of such a
# pod starts at once. Every 30 s is often enough for what is well now; the last words of what ends again are still there.
replace_pods_in_back_off() { # NAMESPACE KIND/NAME
    now=$(kk_uptime)
    [ "$now" -ge "$next_replacement" ] || return 0
    next_replacement=$((now + 30))
    of=$(selector "$1" "$2") || return
    kubectl -n "$1" get pods -l "$of" -o go-template='{{range .items}}{{$pod := .}}{{range .status.containerStatuses}}{{with .state.waiting}}{{with .reason}}{{if eq . "CrashLoopBackOff"}}{{$pod.spec.nodeName}} {{$pod.metadata.name}}{{"\n"}}{{end}}{{end}}{{end}}{{end}}{{end}}' >all.pods || return
    KK_ABSENT=" $absent " awk 'index(ENVIRON["KK_ABSENT"], " " $1 " ") == 0 { print $2 }' all.pods | sort -u >ended
    while read -r pod; do
        kubectl -n "$1" delete pod "$pod" --wait=false >&2 || :
    done <ended
}

is_rolled_out() { # NAMESPACE KIND/NAME
    replace_pods_in_back_off "$1" "$2" || :
    kubectl -n "$1" rollout status "$2" --timeout=15s
}

present_are_rolled_out() { # NAMESPACE KIND/NAME SELECTOR AT-LEAST
    replace_pods_in_back_off "$1" "$2" || :
    present_are_ready "$@"
}

# A rollout does not end while a node is down. Then what counts is that each of $3 pods or more on the other nodes is ready.
rolled_out() { # NAMESPACE KIND/NAME AT-LEAST
    next_replacement=$(($(kk_uptime) + 10))
    if [ -z "$absent" ]; then
        within_300_s is_rolled_out "$1" "$2"
        return
    fi
    of=$(answer selector "$1" "$2") && within_300_s present_are_rolled_out "$1" "$2" "$of" "$3"
}

pods_are_ready() { # NAMESPACE KIND/NAME AT-LEAST
    rolled_out "$@" && return 0
    cat wait.err >&2
    of=$(selector "$1" "$2") || return
    kubectl -n "$1" get pods -l "$of" -o wide >&2
    # NAME READY STATUS …, where READY is "ready/wanted".
    kubectl -n "$1" get pods -l "$of" --no-headers |
        awk '{ split($2, of, "/"); if (of[1] != of[2]) print $1 }' >unready
    while read -r pod; do
        kubectl -n "$1" get events --field-selector "involvedObject.name=$pod" --no-headers | tail -n 5 >&2 || :
        kubectl -n "$1" logs --all-containers --prefix --tail 5 "$pod" >&2 || :
    done <unready
    kk_fail "after 300 s not all pods of $2 are ready:$(awk '{ printf " %s", $1 }' unready)"
}

# Prints the addresses at which the pods of a workload answer: what answers, a tab, and a URL.
addresses() { # NAMESPACE KIND/NAME PORT
    of=$(answer selector "$1" "$2") && answer present_pods "$1" "$of" >present || return
    KK_PORT=$3 awk '$3 == "True" {
        for (i = 4; i <= NF; i++) {
            ip = index($i, ":") ? "[" $i "]" : $i
            print "pod " $2 " of " $1 "\thttp://" ip ":" ENVIRON["KK_PORT"] "/metrics"
        }
    }' present
}
