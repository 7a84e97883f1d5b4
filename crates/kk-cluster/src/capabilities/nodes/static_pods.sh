# Succeeds when the API shows the parts of the control plane as the kubelet of $node wants them, and all of them are ready. A
# kubelet of another version makes its static pods anew: it knows other fields of a pod, so that the same file is another
# pod to it. Until it has reported that, the API takes those of before for ready, which go away a moment later.
# shellcheck disable=SC2154 # node stands before this script
# The UID that the kubelet gives a static pod is an annotation of the pod that the API shows in its place.
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
    # A kubelet that has read no file yet wants none.
    [ -s wanted ] || {
        echo "the kubelet names no static pods yet"
        exit 1
    }
    # Of each part the first word.
    cut -d ' ' -f 1 parts | grep -vxF -f wanted || exit 0
    echo "the kubelet wants other pods of the control plane than the API shows"
    exit 1
fi
# API servers do not reach every kubelet: for a firewall, or a certificate that nobody has signed yet.
now=$(cut -d . -f 1 /proc/uptime)
[ -e unreached ] || echo "$now" >unreached
[ $((now - $(cat unreached))) -ge 30 ] || {
    cat kubelet.err
    exit 1
}
