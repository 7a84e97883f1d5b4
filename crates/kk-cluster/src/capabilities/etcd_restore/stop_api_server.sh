# Stops the kubelet, and then the API server of this host. A runtime that does not answer is a failure, because its containers
# continue to run.
running() {
    crictl ps -q --name '^kube-apiserver$'
}
systemctl stop kubelet.service
now=$(running)
for container in $now; do
    crictl --timeout 60s stop --timeout 5 "$container" >/dev/null
done
now=$(running)
[ -z "$now" ] || kk_fail "the API server does not end"
