# Applies CoreDNS when nodes can run its pods. Before that, the scheduler finds no node for them, and retries only after 1, 2, 4
# and 8 s. Nodes that are not Ready within a minute are left to the verification, which reports them.
taints() {
    kubectl get nodes -o go-template='{{range .items}}{{range .spec.taints}}{{.key}}{{"\n"}}{{end}}{{end}}'
}
until=$(($(kk_uptime) + 60))
kubectl wait --for=condition=Ready node --all --timeout=60s || :
# The taint is removed a moment after the node is Ready.
while taints | grep -qxF node.kubernetes.io/not-ready && [ "$(kk_uptime)" -lt $until ]; do
    sleep 0.2 2>/dev/null || sleep 1
done
kubectl apply --server-side --force-conflicts --validate=false --field-manager=kk -f coredns.yaml
