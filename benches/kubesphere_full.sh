# Measures ks-installer with the full payload of the lab, and helm with the same charts, one after another. Prints lines of a name and
# milliseconds. kubesphere_lib.sh stands before it. Both are measured to the same ends: everything is available, or gone with its
# custom resources and kinds.
# shellcheck disable=SC2154 # mounted and unmount stand before this script
servers() { printf '"common": {"redis": {"enabled": %s, "dataPolicy": "Delete"}, "openldap": {"enabled": %s, "dataPolicy": "Delete"}}' "$1" "$1"; }
all() { # true or false
  printf '{"stand_in": {"core": %s}, "metrics_server": {"enabled": %s}, "snapshot_controller": {"enabled": %s}, ' "$1" "$1" "$1"
  printf '"monitoring": {"enabled": %s}, %s}' "$1" "$(servers "$1")"
}
monitoring=kubesphere-monitoring-system
no_pods() { until [ -z "$(kubectl -n "$1" get pods -o name)" ]; do sleep 0.05; done; }

to "$(all true)"
disable_monitoring() {
  to '{"monitoring": {"enabled": false}}'
  no_pods "$monitoring"
}
measure disable_monitoring disable_monitoring
measure enable_monitoring to '{"monitoring": {"enabled": true}}'
to "$(all false)"
no_pods "$monitoring"
measure whole to "$(all true)"
to "$(all false)"
no_pods "$monitoring"

# The same by helm, in a namespace of its own.
mount_payload
payload=$mounted/payload space=kk-bench
kubectl create namespace "$space" >/dev/null
{
  printf 'apiVersion: v1\nkind: Secret\nmetadata: {name: kube-etcd-client-certs}\ndata:\n'
  # shellcheck disable=SC2016 # not the shell's
  kubectl -n "$monitoring" get secret kube-etcd-client-certs -o go-template='{{range $key, $value := .data}}  {{$key}}: {{$value}}{{"\n"}}{{end}}'
} | kubectl -n "$space" apply -f - >/dev/null
members=$(kubectl -n kubesphere-system get clusterconfiguration ks-installer -o 'jsonpath={.spec.etcd.endpointIps}')
keys=$(mktemp -d)
trap 'rm -rf "$keys"; unmount' EXIT
openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=webhook -addext "subjectAltName=DNS:prometheus-operator-webhook.$space.svc" \
  -keyout "$keys/key" -out "$keys/certificate" 2>/dev/null
{
  echo webhook:
  echo "  certificate: $(base64 -w0 "$keys/certificate")"
  echo "  authority: $(base64 -w0 "$keys/certificate")"
  echo "  key: $(base64 -w0 "$keys/key")"
} >"$keys/values.yaml"

install() { # chart, more…
  chart=$1
  shift
  helm install "$chart" "$payload/charts/$chart" -n "$space" --wait "$@"
}
uninstall() { for chart; do helm uninstall "$chart" -n "$space" --wait; done; }
definitions() { # directory
  for file in "$payload/upstream/$1"/*.yaml; do
    case $file in */kustomization.yaml) ;; *) printf -- '---\n'; cat "$file" ;; esac
  done
}
define() { # directory
  definitions "$1" | kubectl create -f - >/dev/null
  definitions "$1" | kubectl wait --for=condition=Established --timeout=60s -f - >/dev/null
}
install_monitoring() {
  define prometheus-operator
  install prometheus-operator --values "$keys/values.yaml"
  install monitoring --set etcd=true
  install etcd-monitoring --set "addresses={$members}"
  # helm does not know what custom resources wait for.
  for resource in prometheus/k8s alertmanager/main; do
    kubectl -n "$space" wait --for=jsonpath='{.status.availableReplicas}'=1 --timeout=180s "$resource" >/dev/null
  done
}
uninstall_monitoring() {
  uninstall etcd-monitoring monitoring prometheus-operator
  definitions prometheus-operator | kubectl delete -f - >/dev/null
  # ks-installer is ready when no pod is left, so helm is, too.
  until [ -z "$(kubectl -n "$space" get pods -l app.kubernetes.io/managed-by=prometheus-operator -o name
    kubectl -n "$space" get pods -l 'app in (node-exporter, prometheus-operator, prometheus-operator-webhook)' -o name)" ]; do
    sleep 0.05
  done
}
install_whole() {
  install metrics-server
  install local-volumes
  define snapshot-controller
  install snapshot-controller
  install redis --set password=redis
  install openldap --set password=openldap
  install core
  install_monitoring
}
measure whole_by_helm install_whole
measure disable_monitoring_by_helm uninstall_monitoring
measure enable_monitoring_by_helm install_monitoring

uninstall_monitoring
uninstall core openldap redis
kubectl -n "$space" delete pvc --all >/dev/null
# While the one lives who takes their directories away.
until ! kubectl get pv -o 'jsonpath={.items[*].spec.claimRef.namespace}' | grep -q "$space"; do sleep 0.1; done
uninstall snapshot-controller local-volumes metrics-server
definitions snapshot-controller | kubectl delete -f - >/dev/null
kubectl delete namespace "$space" >/dev/null
