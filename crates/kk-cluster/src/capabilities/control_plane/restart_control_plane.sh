# Writes the manifests of the static pods, and waits for the API server when its own has changed.
# shellcheck disable=SC2154 # server stands before this script
manifest=/etc/kubernetes/manifests/kube-apiserver.yaml
was=$(sha256sum <$manifest)
before=$(crictl ps -q --name kube-apiserver)
kubeadm init phase control-plane all --config config.yaml
[ "$was" != "$(sha256sum <$manifest)" ] || exit 0
for _ in $(seq 240); do
    now=$(crictl ps -q --name kube-apiserver)
    if [ -n "$now" ] && [ "$now" != "$before" ] && kubectl --server "$server" get --raw /readyz >/dev/null 2>&1; then
        exit 0
    fi
    sleep 0.5
done
echo 'the API server does not come back with these settings' >&2
crictl logs --tail 15 "$(crictl ps -a -q --name kube-apiserver | head -n 1)" >&2
exit 1
