# Moves the pods of $node to other nodes, as their PodDisruptionBudgets allow within $seconds. With $force, pods that no
# controller re-creates are deleted, too, and after that time the budgets are ignored. Without $force, a failure makes the node
# accept pods again, unless it was cordoned before.
# shellcheck disable=SC2154 # node, seconds and force stand before this script
drain() { # OPTION...
    kubectl drain "$node" --ignore-daemonsets --delete-emptydir-data "$@" >drained 2>drain.err
}
if kubectl get node "$node" -o 'jsonpath={.spec.unschedulable}' >cordoned 2>get.err; then
    if [ -n "$force" ]; then
        drain --force --timeout="${seconds}s" || drain --force --disable-eviction --timeout=60s || {
            cat drain.err >&2
            kk_fail "its pods do not end: $(grep . drain.err | tail -n 1)"
        }
    elif ! drain --timeout="${seconds}s"; then
        stays="; it stays cordoned, as it was before"
        grep -q true cordoned || { kubectl uncordon "$node" >/dev/null && stays=; }
        cat drain.err >&2
        # The last line of a drain that timed out names no pod.
        cause=$(grep -E 'cannot delete|annot evict' drain.err | sort -u | tail -n 1)
        kk_fail "its pods cannot be moved: ${cause:-$(tail -n 1 drain.err)}$stays"
    fi
elif ! grep -q '(NotFound)' get.err; then
    cat get.err >&2
    kk_fail "the API does not say whether the node is there: $(tail -n 1 get.err)"
fi
