# Pods with hostNetwork keep the address of the node and the names in /etc/hosts from their start: flannel, Calico and kube-proxy
# do. This script restarts the pods that are older than the kubelet or than the mark of the move. If the address of the node
# changed, all of them lose their sandbox, and the kubelet starts them in a new one. If only the address of the API changed, $only
# names the workloads (namespace/kind/name) whose pods are deleted with their grace period: all other pods find the API by its
# Service. Static pods stay, because the components of a control plane have moved before.
# shellcheck disable=SC2154 # node, address, mark and only stand before this script, and the function began
export KUBECACHEDIR="$PWD/cache" TZ=UTC
has_address() {
    kubectl --kubeconfig /etc/kubernetes/kubelet.conf --request-timeout 5s get node "$node" \
        -o 'jsonpath= {range .status.addresses[*]}{.address} {end}' >addresses 2>&1 && grep -qF -- " $address " addresses
}
# Lists running pods: creation time, id, name, and `anywhere` if another node may run the next pod of the workload. A pod may have
# ended since it was listed.
in_network_of_node() {
    crictl pods -q --state ready >all || return
    while read -r pod; do
        crictl inspectp -o go-template --template \
            '{{if eq .status.linux.namespaces.options.network "NODE"}}{{.status.createdAt}} {{.status.id}} {{.status.metadata.namespace}}/{{.status.metadata.name}} {{index .status.annotations "kubernetes.io/config.source"}}{{end}}' "$pod" 2>/dev/null || :
    done <all | KK_ONLY=" $only " awk 'NF && $4 != "file" {
        split($3, part, "/")
        # A pod of a DaemonSet has one suffix in its name, and a pod of a Deployment has two.
        set = part[2]
        sub(/-[^-]*$/, "", set)
        deployment = set
        sub(/-[^-]*$/, "", deployment)
        if (ENVIRON["KK_ONLY"] == "  " || index(ENVIRON["KK_ONLY"], " " part[1] "/daemonset/" set " ")) print $1, $2, $3, "here"
        else if (index(ENVIRON["KK_ONLY"], " " part[1] "/deployment/" deployment " ")) print $1, $2, $3, "anywhere"
    }' >pods
}
# Prints how many of these pods this node must run again.
count() {
    awk '$4 == "here"' pods | wc -l
}
# Prints the ids and names of the pods that were created before $since.
old() {
    in_network_of_node && KK_SINCE=$since awk '$1 < ENVIRON["KK_SINCE"] { print $2, $3 }' pods
}
are_back() {
    old >left && [ ! -s left ] && [ "$(count)" -ge "$wanted" ]
}
pause() {
    sleep 0.5 2>/dev/null || sleep 1
}
# The kubelet, which has reported since its start, passes the address in the API to the pods of its node. A cloud provider may
# keep another address there, so the wait is limited.
until=$(($(kk_uptime) + 30))
until has_address || [ "$(kk_uptime)" -ge $until ]; do pause; done
since=$({ began; [ ! -e "$mark" ] || date -r "$mark" +%Y-%m-%dT%H:%M:%SZ; } | sort | tail -n 1)
old >stopped
wanted=$(count)
while read -r pod name; do
    if [ -z "$only" ]; then
        crictl --timeout 60s stopp "$pod" >/dev/null
    else
        kk_do kubectl --kubeconfig /etc/kubernetes/kubelet.conf --request-timeout 30s -n "${name%%/*}" \
            delete pod "${name#*/}" --ignore-not-found --wait=false >/dev/null </dev/null
    fi
done <stopped
until=$(($(kk_uptime) + 300))
until are_back; do
    [ "$(kk_uptime)" -lt $until ] || {
        cat pods >&2
        kk_fail "the pods in the network of $node are not back within 300 s"
    }
    pause
done
