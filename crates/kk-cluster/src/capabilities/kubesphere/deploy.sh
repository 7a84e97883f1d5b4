# Applies ks-installer with the rights that its payload needs, then its ClusterConfiguration.
# shellcheck disable=SC2154 # image, wanted, own_etcd and ca stand before this script
apply() {
    kubectl apply --server-side --force-conflicts --validate=false --field-manager=kk -f "$1" >/dev/null
}

# The binary of ks-installer reports the content of its image. It needs no network and changes nothing.
installer() { runtime_run "$image" kk-installer /ks-installer "$@"; }

# With --skip-pull-images, the image is not pulled yet.
crictl inspecti -q "$image" >/dev/null 2>&1 || crictl pull "$image" >/dev/null
about=$(installer payload verify /payload) || kk_fail "the payload in $image cannot be used"
# "payload 1 with KubeSphere v3.4.1: …"
there=${about#*KubeSphere }
there=${there%%:*}
if [ -n "$wanted" ] && [ "$wanted" != "$there" ]; then
    kk_fail "the payload in $image has KubeSphere $there, and $wanted is asked for"
fi
installer payload rights >rights.yaml
apply rights.yaml
apply installer.yaml
if [ -n "$own_etcd" ]; then
    # Removes a key with which Prometheus read etcd. The key permits all changes of etcd. The Secret stays, because pods may still
    # mount it.
    key=$(kubectl -n kubesphere-monitoring-system get secret kube-etcd-client-certs --ignore-not-found \
        -o jsonpath='{.data.etcd-client\.key}')
    if [ -n "$key" ]; then
        kubectl -n kubesphere-monitoring-system create secret generic kube-etcd-client-certs --dry-run=client -o yaml \
            --from-file=etcd-client-ca.crt="$ca" >secret.yaml
        kubectl replace -f secret.yaml >/dev/null
    fi
fi
kubectl wait --for=condition=Established --timeout=60s crd/clusterconfigurations.installer.kubesphere.io >/dev/null
apply configuration.yaml
