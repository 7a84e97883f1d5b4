# Removes the files that the components of the cluster wrote on a node. Directories that contain only the cluster's data are
# emptied; the directories themselves are removed only if kk created them.
# shellcheck disable=SC2154 # cni stands before this script
flags=/etc/systemd/system/kubelet.service.d/10-kubeadm.conf
other=$(sed -nE '/^Environment="KUBELET_KK_ARGS=/s/.* --root-dir=([^ "]*).*/\1/p' "$flags" 2>/dev/null) || other=
[ "${other:-/var/lib/kubelet}" = /var/lib/kubelet ] || [ ! -e "$other" ] ||
    kk_note "$other, the directory that spec.kubernetes.kubeletArgs has given to the kubelet, stays"
# Entries that a user added to a kubeconfig that kk created or replaced do not belong to the cluster.
awk -F '\t' '($1 == "made" || $1 == "saved") && $2 ~ "/[.]kube/config$" { print $3 "\t" $2 }' /etc/kubekey/owned 2>/dev/null |
    while IFS= read -r config; do
        owner=${config%%"$(printf '\t')"*} config=${config#*"$(printf '\t')"}
        [ -f "$config" ] || continue
        contexts=$(grep -c '^ *- context:' "$config" 2>/dev/null) || :
        [ "${contexts:-0}" -gt 1 ] || continue
        # In the directory of another user, root would write through links of that user.
        if [ -n "$owner" ]; then
            id "$owner" >/dev/null 2>&1 || continue
            kk_file_as "$owner" copy "$config" config.before-delete </dev/null
        else
            cp -p "$config" "$config.before-delete"
        fi
        kk_note "$config has contexts of other clusters: it is kept as $config.before-delete"
    done
for directory in /var/lib/kubelet /var/log/pods /var/log/containers; do empty "$directory"; done
[ -z "$cni" ] || empty /var/lib/cni
# Below /etc/kubernetes, only the files of kubeadm (cmd/kubeadm/app/constants) and kk are removed. Other files there belong to
# users.
(
    cd /etc/kubernetes 2>/dev/null || exit 0
    rm -f admin.conf super-admin.conf kubelet.conf bootstrap-kubelet.conf controller-manager.conf scheduler.conf
    for name in kube-apiserver kube-controller-manager kube-scheduler haproxy kube-vip; do rm -f manifests/$name.yaml; done
    for name in ca apiserver apiserver-kubelet-client front-proxy-ca front-proxy-client; do
        rm -f pki/$name.crt pki/$name.key
    done
    rm -f pki/sa.key pki/sa.pub
    rm -rf tmp kubekey /etc/kubekey/haproxy
    rmdir manifests pki/etcd pki 2>/dev/null || :
)
rm -f /run/xtables.lock
