# Prints whether kube-vip on $node started before its kubeconfig was written. kube-vip reads the kubeconfig only when it starts.
# shellcheck disable=SC2154 # node stands before this script
# crictl prints local time, too.
export TZ=UTC
stale=no
if [ -e /etc/kubernetes/manifests/kube-vip.yaml ] && command -v crictl >/dev/null; then
    id=$(crictl ps -q --state running --name '^kube-vip$' --label "io.kubernetes.pod.name=kube-vip-$node" 2>/dev/null | head -n 1)
    began=''
    [ -z "$id" ] || began=$(crictl inspect -o go-template --template '{{.status.startedAt}}' "$id" 2>/dev/null | cut -c 1-19)
    written=$(date -r /etc/kubernetes/admin.conf +%Y-%m-%dT%H:%M:%S 2>/dev/null)
    if [ -n "$began" ] && [ -n "$written" ]; then
        [ "$(printf '%s\n%s\n' "$began" "$written" | sort | head -n 1)" = "$written" ] || stale=yes
    fi
fi
echo "$stale"
