# Waits until the kubelet that runs now answers at $healthz, and the API has its report on $node: with $ready, that it is
# Ready. A report of the process before it does not count: for 40 s the API takes a node without a kubelet for Ready.
# shellcheck disable=SC2154 # node, healthz and ready stand before this script
export KUBECACHEDIR="$PWD/cache"
property() { systemctl show -p "$1" kubelet.service | cut -d = -f 2; }
# When the process began, in UTC as the API writes times. One second early, because all figures are cut to seconds.
began() {
    ago=$(($(kk_uptime) - $(property ExecMainStartTimestampMonotonic) / 1000000 + 1))
    [ $ago -gt 0 ] || ago=1
    date -u -d "@$(($(date +%s) - ago))" +%Y-%m-%dT%H:%M:%SZ
}
works() {
    if [ -n "$healthz" ]; then
        kubectl --kubeconfig /dev/null --server "$healthz" --request-timeout 2s get --raw /healthz || return
    fi
    report=$(kubectl --kubeconfig /etc/kubernetes/kubelet.conf --request-timeout 5s get node "$node" \
        -o jsonpath='{range .status.conditions[?(@.type=="Ready")]}{.status} {.lastHeartbeatTime} {.message}{end}') || return
    echo "the node's report: $report"
    echo "$report" | KK_BEGAN=$(began) KK_READY=$ready \
        awk '(ENVIRON["KK_READY"] != "" && $1 != "True") || $2 < ENVIRON["KK_BEGAN"] { exit 1 }'
}
gives_up() {
    journalctl -u kubelet.service -n 60 --no-pager -o cat >journal 2>/dev/null || :
    tail -n 5 journal >&2
    # An error of klog: E, month and day, time, thread, place in the source.
    cause=$(grep -E '^E[0-9]{4} ' journal | tail -n 1 | sed 's/^E[^]]*\] //')
    kk_fail "the kubelet does not work: ${cause:-$(tail -n 1 works.out)}"
}
restarts=$(property NRestarts)
until=$(($(kk_uptime) + 120))
until works >works.out 2>&1; do
    # systemd starts it again after it ended. Once may be chance.
    ended=$(($(property NRestarts) - restarts))
    [ $ended -lt 2 ] && [ "$(kk_uptime)" -lt $until ] || gives_up
    sleep 0.3 2>/dev/null || sleep 1
done
