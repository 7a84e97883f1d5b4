# Applies kube-proxy, and restarts its pods if this changes their configuration, which they read only at their start. The previous
# configuration is kept until the restart, even if this script is killed in between.
before=/etc/kubernetes/kubekey/kube-proxy.before
configuration() { kubectl -n kube-system get configmap kube-proxy --ignore-not-found -o jsonpath='{.data}'; }
if [ ! -e $before ]; then
    configuration >kube-proxy.before
    mv kube-proxy.before $before
fi
kk_do kubeadm init phase addon kube-proxy --config kube-proxy.yaml
# kubeadm sets no strategy, and updating one node after the other would take hours in a large cluster.
kubectl -n kube-system patch daemonset kube-proxy --type merge \
    -p '{"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"10%"}}}}'
if [ -s $before ] && [ "$(cat $before)" != "$(configuration)" ]; then
    kubectl -n kube-system rollout restart daemonset/kube-proxy
fi
rm -f $before
