# Writes the manifests of a control plane whose API is down, and lets all its parts start anew. The kubelet is stopped meanwhile:
# while it knows the pods of before it starts new ones 10 to 15 s late, and started again without the API it would not end them.
# Which were removed is not remembered: a run after one that was killed removes all again.
# shellcheck disable=SC2154 # node stands before this script
remove_pods() {
    for part in kube-apiserver kube-controller-manager kube-scheduler; do
        crictl pods -q --label "io.kubernetes.pod.name=$part-$node" || return
    done >sandboxes
    while read -r pod; do
        crictl --timeout 60s rmp -f "$pod" >/dev/null || return
    done <sandboxes
}
# A shell of its own ends what it has begun: nobody would start the kubelet again.
without_kubelet() {
    trap '' HUP INT TERM
    systemctl stop kubelet.service
    replaced=
    if remove_pods && kubeadm init phase control-plane all --config config.yaml; then replaced=yes; fi
    systemctl start kubelet.service
    [ -n "$replaced" ]
}
(without_kubelet)
