# Lines of name and value, separated by a tab. A file that is not there says nothing; one that cannot be read is a failure.
set -e
manifests=/etc/kubernetes/manifests
for file in $manifests/kube-apiserver.yaml $manifests/kube-controller-manager.yaml /etc/kubernetes/admin.conf \
    /var/lib/kubelet/config.yaml; do
    [ ! -e "$file" ] || sed -nE \
        -e 's/^ *- --(cluster-cidr|service-cluster-ip-range|etcd-servers)=/\1\t/p' \
        -e 's/^ *(server|clusterDomain): +/\1\t/p' \
        -e 's/^ *image: .*kube-apiserver:/version\t/p' "$file"
done
