# What the cluster's programs wrote on a node. Directories whose content is the cluster's alone are emptied; they go
# themselves when kk made them.
# shellcheck disable=SC2154 # cni stands before this script
for directory in /var/lib/kubelet /var/log/pods /var/log/containers; do empty "$directory"; done
[ -z "$cni" ] || empty /var/lib/cni
# Below /etc/kubernetes what kubeadm (cmd/kubeadm/app/constants) and kk write. Other files there belong to people.
(
    cd /etc/kubernetes 2>/dev/null || exit 0
    rm -f admin.conf super-admin.conf kubelet.conf bootstrap-kubelet.conf controller-manager.conf scheduler.conf
    for name in apiserver controller-manager scheduler; do rm -f manifests/kube-$name.yaml; done
    for name in ca apiserver apiserver-kubelet-client front-proxy-ca front-proxy-client; do
        rm -f pki/$name.crt pki/$name.key
    done
    rm -f pki/sa.key pki/sa.pub
    rm -rf tmp kubekey
    rmdir manifests pki/etcd pki 2>/dev/null || :
)
rm -f /run/xtables.lock
