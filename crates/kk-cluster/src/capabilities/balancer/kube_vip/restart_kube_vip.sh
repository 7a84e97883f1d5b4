# Stops kube-vip on $node: the kubelet starts it again, and it reads its kubeconfig.
# shellcheck disable=SC2154 # node stands before this script
crictl ps -q --state running --name '^kube-vip$' --label "io.kubernetes.pod.name=kube-vip-$node" | while read -r id; do
    crictl stop --timeout 5 "$id" >/dev/null
done
