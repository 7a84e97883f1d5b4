# Prints the address to which the name of the API leads on a node and, where that is not the file's, ok or why the API does not
# answer at the file's. Then where it leads in the newest pod of kube-proxy: that has the names of when it started.
# shellcheck disable=SC2154 # begin, end, domain, address and port stand before this script
if [ -e /etc/kubernetes/kubelet.conf ]; then
    # shellcheck disable=SC2016 # awk's own variables
    there=$(B=$begin E=$end D=$domain awk '$0 == ENVIRON["B"] { on = 1 } on && NF == 2 && $2 == ENVIRON["D"] { print $1 }
        $0 == ENVIRON["E"] { on = 0 }' /etc/hosts | tail -n 1)
    if [ -n "$there" ]; then
        echo "$there"
        if [ "$there" = "$address" ]; then
            echo ok
        elif said=$(KUBECACHEDIR="$PWD/cache" kubectl --kubeconfig /etc/kubernetes/kubelet.conf \
            --request-timeout 5s --server "https://$address:$port" --tls-server-name "$domain" get --raw /livez 2>&1); then
            echo ok
        else
            echo "$said" | tail -n 1
        fi
        # shellcheck disable=SC2012 # the kubelet's own names
        pod=$(ls -dt /var/lib/kubelet/pods/*/volumes/kubernetes.io~configmap/kube-proxy 2>/dev/null | head -n 1)
        [ -z "$pod" ] || D=$domain awk 'NF == 2 && $2 == ENVIRON["D"] { print $1 }' "${pod%/volumes/*}/etc-hosts" 2>/dev/null |
            tail -n 1
    fi
fi
