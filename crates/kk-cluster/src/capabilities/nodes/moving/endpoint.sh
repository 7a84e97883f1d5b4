# Prints the address that the name of the API has on a node, then "ok" or why the API does not answer at the address in the file.
# The API is queried only if the addresses differ, or with $ask_there. Then prints the address in the newest pod of kube-proxy, which keeps the host
# names from its start; with $ask_in_pods also "ok" or why the API does not answer there.
# shellcheck disable=SC2154 # begin, end, domain, address, port, ask_in_pods and ask_there stand before this script
ask() { # the address
    if said=$(KUBECACHEDIR="$PWD/cache" timeout -k 1 10 kubectl --kubeconfig /etc/kubernetes/kubelet.conf --request-timeout 5s \
        --server "https://$1:$port" --tls-server-name "$domain" get --raw /livez 2>&1); then
        echo ok
    else
        echo "${said:-no answer}" | tail -n 1
    fi
}
if [ -e /etc/kubernetes/kubelet.conf ]; then
    # shellcheck disable=SC2016 # awk's own variables
    there=$(B=$begin E=$end D=$domain awk '$0 == ENVIRON["B"] { on = 1 } on && NF == 2 && $2 == ENVIRON["D"] { print $1 }
        $0 == ENVIRON["E"] { on = 0 }' /etc/hosts | tail -n 1)
    if [ -n "$there" ]; then
        echo "$there"
        if [ "$there" = "$address" ] && [ -z "$ask_there" ]; then echo ok; else ask "$address"; fi
        # shellcheck disable=SC2012 # the kubelet's own names
        pod=$(ls -dt /var/lib/kubelet/pods/*/volumes/kubernetes.io~configmap/kube-proxy 2>/dev/null | head -n 1)
        # shellcheck disable=SC2016 # awk's own variables
        in_pods=$([ -z "$pod" ] || D=$domain awk 'NF == 2 && $2 == ENVIRON["D"] { print $1 }' "${pod%/volumes/*}/etc-hosts" 2>/dev/null |
            tail -n 1)
        if [ -n "$in_pods" ]; then
            echo "$in_pods"
            [ -z "$ask_in_pods" ] || ask "$in_pods"
        fi
    fi
fi
