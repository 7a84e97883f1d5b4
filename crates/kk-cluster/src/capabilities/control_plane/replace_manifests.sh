# Writes the manifests of a control plane whose API is down. The kubelet is stopped meanwhile, and forgets the pods of those of
# before: while it knows them it starts new ones 10 to 15 s late.
# shellcheck disable=SC2154 # node stands before this script
parts='kube-apiserver kube-controller-manager kube-scheduler'
sum_of() { # part
    sha256sum "/etc/kubernetes/manifests/$1.yaml" 2>/dev/null || :
}
remove_pods_of() { # part
    crictl pods -q --label "io.kubernetes.pod.name=$1-$node" >sandboxes || return 0
    while read -r pod; do
        crictl --timeout 60s rmp -f "$pod" >/dev/null 2>&1 || :
    done <sandboxes
}
replace() {
    kubeadm init phase control-plane all --config config.yaml || return
    for part in $parts; do
        sum_of "$part" | grep -qxF -f - sums || remove_pods_of "$part"
    done
}
# A shell of its own ends what it has begun: nobody would start the kubelet again.
without_kubelet() {
    trap '' HUP INT TERM
    systemctl stop kubelet.service
    replaced=
    if replace; then replaced=yes; fi
    systemctl start kubelet.service
    [ -n "$replaced" ]
}
# Sums, not copies: kubeadm takes files of these names anywhere below this directory for patches.
for part in $parts; do sum_of "$part"; done >sums
(without_kubelet)
