# Waits by watches of the API. Shows what is not ready, with its state, its last events and its last log lines.
# shellcheck disable=SC2154 # absent (nodes without an answer), own (nodes of this run) and rollout_progress.sh are prepended
# Repeats a command until it succeeds: an API server that restarts answers no request for a while, and then not all requests.
within_300_s() {
    within 300 "$@"
}

within() { # SECONDS COMMAND...
    until=$(($(kk_uptime) + $1))
    shift
    until "$@" >/dev/null 2>wait.err; do
        [ "$(kk_uptime)" -lt $until ] || return 1
        sleep 0.5 2>/dev/null || sleep 1
    done
}

# Prints the answer to a query, once it succeeds.
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

# The kubelet reports its static pods to the API, possibly late, and a pod that does not exist cannot be watched.
static_pods_are_ready() { # POD...
    within_300_s kubectl -n kube-system wait --for=condition=Ready --timeout=30s pod "$@" && return 0
    cat wait.err >&2
    kubectl -n kube-system get pods "$@" -o wide >&2 || :
    kk_fail "after 300 s not all of these pods are ready: $*"
}

# The time for a workload to update its next pod or make it available, in seconds.
patience=300

list_nodes() {
    asked=$(kk_uptime)
    kubectl get nodes -o go-template='{{range .items}}{{.metadata.name}} {{range .status.conditions}}{{if eq .type "Ready"}}{{.status}}{{end}}{{end}}{{"\n"}}{{end}}' >nodes.list
}

# Excludes nodes that are not Ready and do not belong to this run: their pods are not waited for, like the pods of nodes that did
# not answer. A lost node, or a node that another tool joined, would otherwise block every run.
leave_out_others() {
    within_300_s list_nodes || {
        cat wait.err >&2
        kk_fail "the API does not list its nodes"
    }
    # On hosts so slow that this query takes seconds, pods take minutes to start. One second is subtracted because the clock
    # counts whole seconds.
    slow=$(($(kk_uptime) - asked - 1))
    [ $slow -le 0 ] || patience=$((slow < 5 ? 300 + 60 * slow : 600))
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

# Whether the controller has observed the configuration that was applied last, and, for a Deployment, has created pods of it.
# While a node is down, a DaemonSet may never have all of its new pods.
is_observed() { # NAMESPACE KIND/NAME
    kubectl -n "$1" get "$2" -o go-template='{{if eq .metadata.generation .status.observedGeneration}}{{if eq .kind "Deployment"}}{{with .status.updatedReplicas}}observed{{end}}{{else}}observed{{end}}{{end}}' |
        grep -q observed
}

are_ready() { # PODS AT-LEAST
    KK_LEAST=$2 awk '$3 != "True" { bad = 1 } END { exit bad || NR < ENVIRON["KK_LEAST"] }' "$1"
}

# A pod on a node outside this run does not replace a missing pod on a node of this run.
are_on_own() { # PODS AT-LEAST
    KK_OWN=" $own " KK_LEAST=$2 awk 'index(ENVIRON["KK_OWN"], " " $1 " ") { count++ } END { exit count + 0 < ENVIRON["KK_LEAST"] + 0 }' "$1"
}

# Prints the label value of the pods of the newest revision of a DaemonSet.
newest_revision() { # NAMESPACE KIND/NAME SELECTOR
    kubectl -n "$1" get controllerrevisions -l "$3" -o go-template='{{range .items}}{{$of := .}}{{range .metadata.ownerReferences}}{{.kind}}/{{.name}} {{$of.revision}} {{index $of.metadata.labels "controller-revision-hash"}}{{"\n"}}{{end}}{{end}}' >revisions &&
        KK_OF=DaemonSet/${2#*/} awk '$1 == ENVIRON["KK_OF"] && $2 + 0 > newest { newest = $2 + 0; hash = $3 } END { print hash; exit hash == "" }' revisions
}

# Whether the present pods of a DaemonSet have its newest revision, and are ready.
are_newest() { # NAMESPACE KIND/NAME SELECTOR
    hash=$(newest_revision "$@") && present_pods "$1" "$3,controller-revision-hash=$hash" >newest &&
        are_ready newest "$(wc -l <present)"
}

# Whether the controller of a DaemonSet replaces no pod, because its pods on nodes that are down use up maxUnavailable. A node may
# have gone down or recovered since this script started. If only the network of a node is missing, its pod is well.
is_held_back() { # NAMESPACE KIND/NAME SELECTOR
    list_nodes && present_pods "$1" "$3" >present || return
    down=$(KK_ABSENT=" $absent " awk '
        FILENAME == "all.pods" { if ($3 == "True") well[$1]; next }
        index(ENVIRON["KK_ABSENT"], " " $1 " ") && $2 != "True" && !($1 in well)' all.pods nodes.list | wc -l)
    kubectl -n "$1" get "$2" -o go-template='{{.spec.updateStrategy.rollingUpdate.maxUnavailable}} {{.status.desiredNumberScheduled}}{{"\n"}}' >limit &&
        KK_DOWN=$down awk '{
            most = $1 + 0
            if ($1 ~ /%$/) { part = most * $2 / 100; most = int(part) + (part > int(part)) }
        } END { exit ENVIRON["KK_DOWN"] < 1 || ENVIRON["KK_DOWN"] < most }' limit
}

present_are_ready() { # NAMESPACE KIND/NAME SELECTOR AT-LEAST
    rm -f held
    is_observed "$1" "$2" && present_pods "$1" "$3" >present && are_ready present "$4" || return
    case $2 in
        daemonset/*)
            if ! are_on_own present "$4"; then
                echo "not every node of this run has a pod of $2" >&2
                return 1
            fi
            are_newest "$1" "$2" "$3" && return
            if is_held_back "$1" "$2" "$3"; then
                : >held
            else
                echo "pods of before:$(grep -vxF -f newest present | awk '{ printf " %s", $2 }')" >&2
                return 1
            fi
            ;;
    esac
}

# The kubelet restarts a container that ended only after 10, 20, 40 s, up to 5 minutes, although the cause may be gone. A
# replacement of its pod starts at once. An interval of 30 s is short enough for pods that can work now, and keeps the last
# messages of pods that end again.
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

# A rollout does not end while a node is down. In that case all pods on the other nodes, at least $3, have to be ready, and also
# new, unless a node that is down keeps the controller from replacing them.
rolled_out() { # NAMESPACE KIND/NAME AT-LEAST
    next_replacement=$(($(kk_uptime) + 10))
    if [ -z "$absent" ]; then
        while_it_progresses "$patience" "$1" "$2" is_rolled_out "$1" "$2"
        return
    fi
    of=$(answer selector "$1" "$2") &&
        while_it_progresses "$patience" "$1" "$2" present_are_rolled_out "$1" "$2" "$of" "$3" || return
    [ ! -e held ] || kk_note "$2 still has pods of before: Kubernetes does not replace them while other nodes are not Ready"
}

# Prints the node of a pod and the last warning about the pod. The message of an event may have several lines.
trouble() { # NAMESPACE POD
    kubectl -n "$1" get pod "$2" -o go-template='{{with .spec.nodeName}} on {{.}}{{end}}' || :
    kubectl -n "$1" get events --field-selector "involvedObject.name=$2,type=Warning" \
        -o go-template='{{range .items}}{{printf "%q" .message}}{{"\n"}}{{end}}' | tail -n 1 | sed 's/^"\(.*\)"$/: \1/' | tr -d '\n'
}

pods_are_ready() { # NAMESPACE KIND/NAME AT-LEAST
    rolled_out "$@" && return 0
    grep -v 'timed out waiting for the condition' wait.err >&2 || :
    of=$(selector "$1" "$2") || return
    kubectl -n "$1" get pods -l "$of" -o wide >&2
    # NAME READY STATUS …, where READY is "ready/wanted".
    kubectl -n "$1" get pods -l "$of" --no-headers |
        awk '{ split($2, of, "/"); if (of[1] != of[2]) print $1 }' >unready
    while read -r pod; do
        kubectl -n "$1" get events --field-selector "involvedObject.name=$pod" --no-headers | tail -n 5 >&2 || :
        kubectl -n "$1" logs --all-containers --prefix --tail 5 "$pod" >&2 || :
    done <unready
    why=
    read -r first <unready && why=": $first$(trouble "$1" "$first")"
    others=$(($(wc -l <unready) - 1))
    [ "$others" -le 0 ] || why="$why (and $others more)"
    kk_fail "not all pods of $2 are ready, and none became so for $patience s$why"
}

# Prints the addresses at which the pods of a workload answer: a name, a tab, and a URL.
addresses() { # NAMESPACE KIND/NAME PORT
    of=$(answer selector "$1" "$2") && answer present_pods "$1" "$of" >present || return
    KK_PORT=$3 awk '$3 == "True" {
        for (i = 4; i <= NF; i++) {
            ip = index($i, ":") ? "[" $i "]" : $i
            print "pod " $2 " of " $1 "\thttp://" ip ":" ENVIRON["KK_PORT"] "/metrics"
        }
    }' present
}
