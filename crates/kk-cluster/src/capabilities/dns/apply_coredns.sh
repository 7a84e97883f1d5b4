# Applies CoreDNS when the nodes can take its pods. Before that the scheduler finds no place for them, and looks again only after 1, 2,
# 4 and 8 s. A node that is not Ready within a minute is left to the verification, which names it.
taints() {
    kubectl get nodes -o go-template='{{range .items}}{{range .spec.taints}}{{.key}}{{"\n"}}{{end}}{{end}}'
}
until=$(($(kk_uptime) + 60))
kubectl wait --for=condition=Ready node --all --timeout=60s || :
# The taint goes a moment after the node is Ready.
while taints | grep -qxF node.kubernetes.io/not-ready && [ "$(kk_uptime)" -lt $until ]; do
    sleep 0.2 2>/dev/null || sleep 1
done
kubectl apply --server-side --force-conflicts --validate=false --field-manager=kk -f coredns.yaml
