# Applies kube-proxy, and restarts its pods when this changes their configuration: they read it only when they start.
# The configuration of before is kept until the restart, also when this script is killed between the two.
before=/etc/kubernetes/kubekey/kube-proxy.before
configuration() { kubectl -n kube-system get configmap kube-proxy --ignore-not-found -o jsonpath='{.data}'; }
if [ ! -e $before ]; then
    configuration >kube-proxy.before
    mv kube-proxy.before $before
fi
kk_do kubeadm init phase addon kube-proxy --config kube-proxy.yaml
# kubeadm sets no strategy, and a large cluster would need hours with one node after the other.
kubectl -n kube-system patch daemonset kube-proxy --type merge \
    -p '{"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"10%"}}}}'
if [ -s $before ] && [ "$(cat $before)" != "$(configuration)" ]; then
    kubectl -n kube-system rollout restart daemonset/kube-proxy
fi
rm -f $before
