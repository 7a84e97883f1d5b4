# Writes the manifests of a control plane whose API is down, and restarts all its components. The kubelet is stopped during this
# time: while it knows the old pods, it starts new ones 10 to 15 s late, and if it were restarted without the API, it would not
# end the old pods. The script does not record which pods it has removed: a run after a killed one removes all of them again.
# shellcheck disable=SC2154 # node stands before this script
remove_pods() {
    for part in kube-apiserver kube-controller-manager kube-scheduler; do
        crictl pods -q --label "io.kubernetes.pod.name=$part-$node" || return
    done >sandboxes
    while read -r pod; do
        crictl --timeout 60s rmp -f "$pod" >/dev/null || return
    done <sandboxes
}
# A subshell that ignores signals finishes what it has begun. Otherwise, the kubelet could stay stopped.
without_kubelet() {
    trap '' HUP INT TERM
    systemctl stop kubelet.service
    replaced=
    if remove_pods && kubeadm init phase control-plane all --config config.yaml; then replaced=yes; fi
    systemctl start kubelet.service
    [ -n "$replaced" ]
}
(without_kubelet)
