# Prints objects that may block an upgrade: one line for each object, with fields separated by tabs. "end" is the last line.
# shellcheck disable=SC2154 # server stands before this script
set -e
export KUBECONFIG=/etc/kubernetes/admin.conf KUBECACHEDIR="$PWD/cache"
ask() { # WORDS… TEMPLATE
    timeout -k 1 40 kubectl --server "$server" --request-timeout 20s get "$@"
}
ask poddisruptionbudgets -A -o go-template='{{range .items}}Budget{{"\t"}}{{.metadata.namespace}}/{{.metadata.name}}{{"\t"}}{{with .status}}{{.disruptionsAllowed}}{{"\t"}}{{.currentHealthy}}{{"\t"}}{{.desiredHealthy}}{{"\t"}}{{.expectedPods}}{{end}}{{"\n"}}{{end}}'
# The same rule as in kubectl drain: a controller re-creates its pods, and a pod that has ended does not need to be re-created.
ask pods -A --field-selector status.phase!=Succeeded,status.phase!=Failed -o go-template='{{range .items}}{{$made := false}}{{range .metadata.ownerReferences}}{{if .controller}}{{$made = true}}{{end}}{{end}}{{if not $made}}Pod{{"\t"}}{{.metadata.namespace}}/{{.metadata.name}}{{"\t"}}{{with .spec.nodeName}}{{.}}{{end}}{{"\n"}}{{end}}{{end}}'
for kind in validating mutating; do
    ask ${kind}webhookconfigurations -o go-template='{{range .items}}{{$of := .metadata.name}}{{range .webhooks}}{{if eq .failurePolicy "Fail"}}{{$name := .name}}{{with .clientConfig.service}}Webhook{{"\t"}}{{$of}}/{{$name}}{{"\t"}}{{.namespace}}/{{.name}}{{"\n"}}{{end}}{{end}}{{end}}{{end}}'
done >webhooks
cat webhooks
cut -f 3 webhooks | sort -u >services
# An endpoint whose readiness is not known counts as ready (EndpointConditions of discovery.k8s.io/v1).
while IFS=/ read -r namespace name; do
    ready=$(ask endpointslices -n "$namespace" -l "kubernetes.io/service-name=$name" -o go-template='{{range .items}}{{range .endpoints}}{{if eq (printf "%v" .conditions.ready) "false"}}{{else}}x{{end}}{{end}}{{end}}')
    printf 'Service\t%s/%s\t%s\n' "$namespace" "$name" "${#ready}"
done <services
echo end
