# Removes kube-vip from $node, and its address from the network interfaces of the host: a killed kube-vip does not remove it.
# shellcheck disable=SC2154 # node stands before this script
manifest=/etc/kubernetes/manifests/kube-vip.yaml removed=/etc/kubernetes/kubekey/removed-kube-vip.yaml
# No other file contains the address, so the copy stays until the address is removed. A killed removal may have left one already.
if [ -e "$manifest" ]; then
    mkdir -p "${removed%/*}"
    (umask 077 && cat "$manifest" >>"$removed")
    rm -f "$manifest"
fi
runs() {
    [ -n "$(crictl ps -q --state running --name '^kube-vip$' --label "io.kubernetes.pod.name=kube-vip-$node" 2>/dev/null)" ]
}
# On a host that leaves the cluster, the runtime has ended all pods already.
if systemctl -q is-active kubelet.service 2>/dev/null; then
    until=$(($(kk_uptime) + 60))
    while runs; do
        [ "$(kk_uptime)" -lt $until ] || kk_fail "kube-vip does not end within 60 s"
        sleep 0.3 2>/dev/null || sleep 1
    done
fi
sed -n 's/^ *- {name: address, value: "\([0-9.]*\)"}$/\1/p' "$removed" 2>/dev/null | sort -u | while read -r vip; do
    ip -o -4 addr show to "$vip" | while read -r _ card _; do
        ip addr del "$vip/32" dev "$card"
    done
done
rm -f "$removed"
