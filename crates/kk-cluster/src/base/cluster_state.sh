# Asks the API for all that checks need, in two requests: one line an object, fields separated by tabs. `end` follows only
# when both were answered whole: kubectl prints what it has, and then fails. `none`: no control plane is here.
# Each kubectl is bounded from outside, because its own timeout is one of each of its requests. Of an API that hangs it makes
# five; on a slow host it needs long before it makes the first.
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
