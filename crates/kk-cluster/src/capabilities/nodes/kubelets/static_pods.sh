# Succeeds when the API shows the components of the control plane as the kubelet of $node wants them, and all of them are ready. A
# kubelet of another version re-creates its static pods: it knows other fields of a pod, so the same file results in another pod.
# Until it has reported that, the API shows the previous pods as ready, although they end a moment later.
# shellcheck disable=SC2154 # node stands before this script
# The UID that the kubelet assigns to a static pod is an annotation of the mirror pod in the API.
kubectl --request-timeout 10s -n kube-system get pods --field-selector "spec.nodeName=$node" \
    -o go-template='{{range .items}}{{with .metadata.annotations}}{{with index . "kubernetes.io/config.mirror"}}{{.}}{{end}}{{end}} {{range .status.conditions}}{{if eq .type "Ready"}}{{.status}}{{end}}{{end}} {{.metadata.name}}{{"\n"}}{{end}}' >shown
: >parts
for part in kube-apiserver kube-controller-manager kube-scheduler; do
    grep " True $part-$node\$" shown >>parts || {
        echo "the API does not show $part-$node as ready"
        exit 1
    }
done
if kubectl --request-timeout 10s get --raw "/api/v1/nodes/$node/proxy/pods" >kubelet.json 2>kubelet.err; then
    rm -f unreached
    grep -o '"kubernetes.io/config.hash": *"[^"]*"' kubelet.json | cut -d '"' -f 4 >wanted
    # A kubelet that has not read any manifest yet wants none.
    [ -s wanted ] || {
        echo "the kubelet names no static pods yet"
        exit 1
    }
    # The first word of each line is the UID.
    cut -d ' ' -f 1 parts | grep -vxF -f wanted || exit 0
    echo "the kubelet wants other pods of the control plane than the API shows"
    exit 1
fi
# API servers do not reach every kubelet, for example because of a firewall or a certificate that is not signed yet.
now=$(cut -d . -f 1 /proc/uptime)
[ -e unreached ] || echo "$now" >unreached
[ $((now - $(cat unreached))) -ge 30 ] || {
    cat kubelet.err
    exit 1
}
