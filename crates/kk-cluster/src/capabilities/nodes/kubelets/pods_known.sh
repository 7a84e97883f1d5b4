# Succeeds when the running kubelet has reported to the API, and every container that the API reports as ready runs on this node.
# After a loss of power or of the runtime, the API shows the previous containers for a while. With $all, all containers of the
# system have to be ready, too, because another control plane may have returned an outdated status a moment ago.
# shellcheck disable=SC2154 # node and all stand before this script
export KUBECACHEDIR="$PWD/cache"
api() {
    kubectl --kubeconfig /etc/kubernetes/kubelet.conf --request-timeout 5s "$@"
}
since=$(systemctl show -p ExecMainStartTimestampMonotonic kubelet.service)
ago=$(($(cut -d . -f 1 /proc/uptime) - ${since#*=} / 1000000 + 1))
began=$(date -u -d "@$(($(date +%s) - ago))" +%Y-%m-%dT%H:%M:%S)
renewed=$(api -n kube-node-lease get lease "$node" -o 'jsonpath={.spec.renewTime}')
echo "the kubelet began at $began, and renewed its lease at $renewed"
# shellcheck disable=SC3012 # two times of the same form; dash, busybox and bash have this operator
[ ! "$renewed" \< "$began" ]
# In the status, the identifier is preceded by the name of the runtime: containerd://...
api get pods -A --field-selector "spec.nodeName=$node,status.phase!=Succeeded" \
    -o go-template='{{range .items}}{{$namespace := .metadata.namespace}}{{range .status.containerStatuses}}{{.ready}} {{$namespace}} {{.containerID}}{{"\n"}}{{end}}{{end}}' >containers
if [ -n "$all" ] && grep '^false kube-' containers; then
    echo "these containers are not ready"
    exit 1
fi
sed -n 's/^true //p' containers >ready
crictl ps -q --no-trunc >running
sed 's|.*//||' ready | grep -vxF -f running >gone || [ $? -eq 1 ]
if [ -s gone ]; then
    echo "the API takes containers for ready that do not run: $(tr '\n' ' ' <gone)"
    exit 1
fi
