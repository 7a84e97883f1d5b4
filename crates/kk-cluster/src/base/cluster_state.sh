# Queries the API for everything that the checks need, in two requests. Each object is one line; tabs separate its fields. The
# line `end` follows only if both answers are complete: kubectl prints what it has, and then fails. `none`: this host has no
# control plane.
# `timeout` bounds each kubectl, because --request-timeout applies to each of its requests separately. If the API hangs, kubectl
# makes five requests; on a slow host it needs long before the first one.
# shellcheck disable=SC2154 # objects, server and version stand before this script
set -e
ask() {
    timeout -k 1 40 kubectl --server "$server" --request-timeout 4s "$@" || {
        [ $? != 124 ] || echo "it did not answer within 40 s" >&2
        exit 1
    }
}
if [ ! -e /etc/kubernetes/admin.conf ]; then
    echo none
    exit
fi
export KUBECONFIG=/etc/kubernetes/admin.conf KUBECACHEDIR="$PWD/cache"
ask get nodes -o go-template='{{range .items}}Node{{"\t"}}{{.metadata.name}}{{"\t"}}{{range .status.conditions}}{{if eq .type "Ready"}}{{.status}}{{end}}{{end}}{{"\t"}}{{.status.nodeInfo.kubeletVersion}}{{"\t"}}{{range $k, $v := .metadata.labels}}{{$k}}={{$v}} {{end}}{{"\t"}}{{range .spec.taints}}{{.key}}{{if .value}}={{.value}}{{end}}:{{.effect}} {{end}}{{"\t"}}{{range .status.conditions}}{{if eq .type "Ready"}}{{.lastHeartbeatTime}}{{end}}{{end}}{{"\t"}}{{range .status.addresses}}{{if eq .type "InternalIP"}}{{.address}} {{end}}{{end}}{{"\t"}}{{.status.nodeInfo.machineID}}{{"\t"}}{{range .spec.podCIDRs}}{{.}} {{end}}{{"\n"}}{{end}}'
printf %s "$objects" | ask get --ignore-not-found -f - -o go-template='{{range .items}}Object{{"\t"}}'"$version"'{{"\n"}}{{.kind}}{{"\t"}}{{.metadata.namespace}}/{{.metadata.name}}{{"\t"}}{{if eq .kind "Deployment"}}{{.spec.replicas}}{{"\t"}}{{if eq .status.observedGeneration .metadata.generation}}{{with .status.availableReplicas}}{{.}}{{else}}0{{end}}{{else}}0{{end}}{{else if eq .kind "DaemonSet"}}{{.status.desiredNumberScheduled}}{{"\t"}}{{if eq .status.observedGeneration .metadata.generation}}{{with .status.numberAvailable}}{{.}}{{else}}0{{end}}{{else}}0{{end}}{{else if eq .kind "Pod"}}{{range .status.conditions}}{{if eq .type "Ready"}}{{.status}}{{end}}{{end}}{{end}}{{"\n"}}{{end}}'
echo end
