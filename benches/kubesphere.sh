#!/bin/sh
# Measures ks-installer on a control plane of a cluster that runs it with the lab's payload, and helm with the same chart beside
# it. Prints lines of a name and a number: milliseconds, or requests to the API. Everything is looked at by kubectl, whose start is in
# each time. STAND_IN is the image of the stand-ins, NUMBER another one in each round.
set -eu
export KUBECONFIG=/etc/kubernetes/admin.conf HOME=/root
cc="-n kubesphere-system clusterconfiguration ks-installer"
mounted=/run/kk-bench-ks
# A mount of containerd is known by its place: without the removal the next round finds it taken.
trap 'ctr -n k8s.io images unmount --rm "$mounted" >/dev/null 2>&1 || :' EXIT

# shellcheck disable=SC2086 # the words of cc are words
configure() { kubectl patch $cc --type merge -p "{\"spec\":$1}" >/dev/null; }
settled='{{if .status.observedGeneration}}{{if and (eq .status.observedGeneration .metadata.generation) (eq .status.phase "Ready")}}yes{{end}}{{end}}'
# shellcheck disable=SC2086
settle() { until [ "$(kubectl get $cc -o go-template="$settled")" = yes ]; do sleep 0.02; done; }
now() { date +%s%3N; }
measure() { # name, command…
  name=$1 begun=$(now)
  shift
  "$@"
  echo "$name $(($(now) - begun))"
}
to() { # spec
  configure "$1"
  settle
}
# Of the operator's account, told apart by a flow schema of its own. A watch counts once. The Lease of the leader, which is renewed
# whether something changes or not, has another schema and does not count.
requests() {
  kubectl get --raw /metrics | awk '/^apiserver_flowcontrol_dispatched_requests_total{.*flow_schema="kk-bench"/ { n += $NF } END { print n + 0 }'
}
schema() { # name, precedence, group, resources, addresses that are no resources
  kubectl apply -f - >/dev/null <<SCHEMA
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: $1}
spec:
  matchingPrecedence: $2
  priorityLevelConfiguration: {name: workload-high}
  distinguisherMethod: {type: ByUser}
  rules:
  - subjects: [{kind: ServiceAccount, serviceAccount: {namespace: kubesphere-system, name: ks-installer}}]
    resourceRules: [{verbs: ['*'], apiGroups: ['$3'], resources: ['$4'], clusterScope: true, namespaces: ['*']}]
    nonResourceRules: $5
SCHEMA
}
schema kk-bench-leases 9 coordination.k8s.io leases '[]'
schema kk-bench 10 '*' '*' '[{verbs: ["*"], nonResourceURLs: ["*"]}]'
to '{"metrics_server": {"enabled": true, "replicas": 1}}'

# Something changes that no component reads.
sleep 2
before=$(requests)
measure nothing to "{\"terminal\": {\"timeout\": $((600 + NUMBER))}}"
sleep 2
echo "nothing_requests $(($(requests) - before))"

# One field: until the object has it.
patched() {
  configure '{"metrics_server": {"replicas": 2}}'
  until [ "$(kubectl -n ks-stand-in get deployment stand-in-metrics-server -o 'jsonpath={.spec.replicas}')" = 2 ]; do sleep 0.02; done
}
measure field patched
to '{"metrics_server": {"replicas": 1}}'

measure disable to '{"metrics_server": {"enabled": false}}'
measure enable to '{"metrics_server": {"enabled": true}}'

installer=$(ctr -n k8s.io images ls -q | grep -m 1 ':kk-')
mkdir -p "$mounted"
ctr -n k8s.io images mount "$installer" "$mounted" >/dev/null
helm() { "$mounted/usr/local/bin/helm" "$@" >/dev/null; }
kubectl create namespace kk-bench --dry-run=client -o yaml | kubectl apply -f - >/dev/null
# The chart's pods read it.
corefile=$(kubectl -n ks-stand-in get configmap web -o 'jsonpath={.data.Corefile}')
kubectl -n kk-bench create configmap web --from-literal=Corefile="$corefile" --dry-run=client -o yaml | kubectl apply -f - >/dev/null
measure enable_by_helm helm install by-helm "$mounted/payload/charts/metrics-server" -n kk-bench --wait --set "image=$STAND_IN" --set replicas=1
measure disable_by_helm helm uninstall by-helm -n kk-bench --wait
kubectl delete namespace kk-bench --wait=false >/dev/null
kubectl delete flowschema kk-bench kk-bench-leases >/dev/null
