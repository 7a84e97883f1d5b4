# Pods in the network of a node work with the address that it had when they started, and with the names of its /etc/hosts of
# then: flannel, Calico and kube-proxy do. What is older than the kubelet, or than the mark of the move, loses its sandbox, and the
# kubelet starts it again in a new one. Static pods stay: the parts of a control plane have moved before.
# shellcheck disable=SC2154 # node, address and mark stand before this script, and the function began
export KUBECACHEDIR="$PWD/cache" TZ=UTC
has_address() {
    kubectl --kubeconfig /etc/kubernetes/kubelet.conf --request-timeout 5s get node "$node" \
        -o 'jsonpath= {range .status.addresses[*]}{.address} {end}' >addresses 2>&1 && grep -qF -- " $address " addresses
}
# Those that run: when they were made, and what they are. One may have gone since it was listed.
in_network_of_node() {
    crictl pods -q --state ready >all || return
    while read -r pod; do
        crictl inspectp -o go-template --template \
            '{{if eq .status.linux.namespaces.options.network "NODE"}}{{.status.createdAt}} {{.status.id}} {{.status.metadata.name}} {{index .status.annotations "kubernetes.io/config.source"}}{{end}}' "$pod" 2>/dev/null || :
    done <all | awk 'NF && $4 != "file"' >pods
}
# Prints those that were made before the kubelet began.
old() {
    in_network_of_node && KK_SINCE=$since awk '$1 < ENVIRON["KK_SINCE"] { print $2 }' pods
}
are_back() {
    old >left && [ ! -s left ] && [ "$(wc -l <pods)" -ge "$wanted" ]
}
pause() {
    sleep 0.5 2>/dev/null || sleep 1
}
# The kubelet, which has reported since it began, tells pods the address that the API has for its node. That of a cloud may
# stay another.
until=$(($(kk_uptime) + 30))
until has_address || [ "$(kk_uptime)" -ge $until ]; do pause; done
since=$({ began; [ ! -e "$mark" ] || date -r "$mark" +%Y-%m-%dT%H:%M:%SZ; } | sort | tail -n 1)
old >stopped
wanted=$(wc -l <pods)
while read -r pod; do
    crictl --timeout 60s stopp "$pod" >/dev/null
done <stopped
until=$(($(kk_uptime) + 300))
until are_back; do
    [ "$(kk_uptime)" -lt $until ] || {
        cat pods >&2
        kk_fail "the pods in the network of $node are not back within 300 s"
    }
    pause
done
