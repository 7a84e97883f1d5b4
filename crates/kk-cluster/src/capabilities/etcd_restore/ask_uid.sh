# Prints the UID of the namespace kube-system, by which clusters are distinguished.
# shellcheck disable=SC2154 # server stands before this script
export KUBECONFIG=/etc/kubernetes/admin.conf KUBECACHEDIR="$PWD/cache"
timeout -k 1 15 kubectl --server "$server" --request-timeout 10s get namespace kube-system -o jsonpath='{.metadata.uid}'
