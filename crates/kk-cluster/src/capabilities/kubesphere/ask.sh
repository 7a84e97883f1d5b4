# Prints the state of KubeSphere as lines with a key, a tab and a value. `timeout` bounds each kubectl, because kubectl's own
# timeout applies to each of its requests.
# shellcheck disable=SC2154 # server stands before this script
ask() {
    KUBECONFIG=/etc/kubernetes/admin.conf KUBECACHEDIR="$PWD/cache" timeout -k 1 40 kubectl --server "$server" --request-timeout 4s "$@"
}

# Prints the status of the ClusterConfiguration, and why the operator's pod does not run.
configuration() {
    ask -n kubesphere-system get clusterconfigurations.installer.kubesphere.io ks-installer --ignore-not-found \
        -o jsonpath='generation{"\t"}{.metadata.generation}{"\n"}by{"\t"}{.metadata.annotations.installer\.kubesphere\.io/deployed-by}{"\n"}status{"\t"}{.status}{"\n"}' &&
        ask -n kubesphere-system get pods -l app=ks-installer \
            -o jsonpath='{range .items[*].status.containerStatuses[*].state.waiting}trouble{"\t"}{.reason}: {.message}{"\n"}{end}' &&
        ask -n kubesphere-system get service ks-console --ignore-not-found -o jsonpath='console{"\t"}{.spec.ports[0].nodePort}{"\n"}'
}
