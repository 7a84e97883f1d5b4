# Waits by watches of the API, and shows what is not ready: its state, its last events and its last words.
nodes_are_ready() {
    kubectl wait --for=condition=Ready node "$@" --timeout=300s >/dev/null 2>wait.err && return 0
    cat wait.err >&2
    kubectl get nodes "$@" >&2
    kk_fail "after 300 s these nodes are not Ready:$(kubectl get nodes "$@" --no-headers | awk '$2 !~ /^Ready/ { printf " %s", $1 }')"
}

# pods_are_ready NAMESPACE KIND/NAME
pods_are_ready() {
    kubectl -n "$1" rollout status "$2" --timeout=300s >/dev/null 2>wait.err && return 0
    cat wait.err >&2
    selector=$(kubectl -n "$1" get "$2" -o go-template='{{range $k, $v := .spec.selector.matchLabels}}{{$k}}={{$v}},{{end}}') || return
    kubectl -n "$1" get pods -l "${selector%,}" -o wide >&2
    # NAME READY STATUS …, where READY is "ready/wanted".
    kubectl -n "$1" get pods -l "${selector%,}" --no-headers |
        awk '{ split($2, of, "/"); if (of[1] != of[2]) print $1 }' >unready
    while read -r pod; do
        kubectl -n "$1" get events --field-selector "involvedObject.name=$pod" --no-headers | tail -n 5 >&2 || :
        kubectl -n "$1" logs --all-containers --prefix --tail 5 "$pod" >&2 || :
    done <unready
    kk_fail "after 300 s not all pods of $2 are ready:$(awk '{ printf " %s", $1 }' unready)"
}
