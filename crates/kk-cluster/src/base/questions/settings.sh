# Prints lines of name and value, separated by a tab. A missing file yields no line; an unreadable file is a failure.
set -e
manifests=/etc/kubernetes/manifests
# The note contains the endpoint that was last applied. Without a note, the kubeconfig counts, although the user may have edited
# it.
note=/etc/kubernetes/kubekey/cluster.yaml
[ -e $note ] || note=$note.replaced
admin=/etc/kubernetes/admin.conf
endpoint=$(sed -nE 's/^controlPlaneEndpoint: *"?([^"]*)"?$/\1/p' $note 2>/dev/null || :)
if [ -n "$endpoint" ]; then
    printf 'server\thttps://%s\n' "$endpoint"
    admin=
fi
set --
for file in $manifests/kube-apiserver.yaml $manifests/kube-controller-manager.yaml $admin /var/lib/kubelet/config.yaml; do
    [ ! -e "$file" ] || set -- "$@" "$file"
done
[ $# -eq 0 ] || sed -nE \
    -e 's/^ *- --(cluster-cidr|service-cluster-ip-range|etcd-servers|advertise-address)=/\1\t/p' \
    -e 's/^ *(server|clusterDomain): +/\1\t/p' \
    -e 's/^ *image: .*kube-apiserver:/version\t/p' "$@"
