# Waits until the running kubelet answers at $healthz, and until the API has its report on $node: with $ready, that the node is
# Ready. A report of the previous process does not count, because the API shows a node without a kubelet as Ready for 40 s.
# shellcheck disable=SC2154 # node, healthz and ready stand before this script
export KUBECACHEDIR="$PWD/cache"
property() { systemctl show -p "$1" kubelet.service | cut -d = -f 2; }
# Prints when the process started, in UTC in the API's time format. It is one second early, because all times are cut to seconds.
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
    # An error line of klog: E, month and day, time, thread, position in the source.
    cause=$(grep -E '^E[0-9]{4} ' journal | tail -n 1 | sed 's/^E[^]]*\] //')
    kk_fail "the kubelet does not work: ${cause:-$(tail -n 1 works.out)}"
}
restarts=$(property NRestarts)
until=$(($(kk_uptime) + 120))
until works >works.out 2>&1; do
    # systemd restarts a kubelet that ended. A single restart may be chance.
    ended=$(($(property NRestarts) - restarts))
    [ $ended -lt 2 ] && [ "$(kk_uptime)" -lt $until ] || gives_up
    sleep 0.3 2>/dev/null || sleep 1
done
