# Measures ks-installer on a control plane of a cluster that runs it with the lab's payload, and helm with the same chart beside
# it. Prints lines of a name and a number: milliseconds, or requests to the API. kubesphere_lib.sh stands before it.
# STAND_IN is the image of the stand-ins, NUMBER another one in each round.
# shellcheck disable=SC2154 # mounted stands before this script
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

mount_payload
kubectl create namespace kk-bench --dry-run=client -o yaml | kubectl apply -f - >/dev/null
# The chart's pods read it.
corefile=$(kubectl -n ks-stand-in get configmap web -o 'jsonpath={.data.Corefile}')
kubectl -n kk-bench create configmap web --from-literal=Corefile="$corefile" --dry-run=client -o yaml | kubectl apply -f - >/dev/null
measure enable_by_helm helm install by-helm "$mounted/payload/charts/metrics-server" -n kk-bench --wait --set "image=$STAND_IN" --set replicas=1
measure disable_by_helm helm uninstall by-helm -n kk-bench --wait
kubectl delete namespace kk-bench --wait=false >/dev/null
kubectl delete flowschema kk-bench kk-bench-leases >/dev/null
