# Prints the deprecated APIs that were asked for at this API server since it runs, as its metric names them; "end" is last.
# shellcheck disable=SC2154 # server stands before this script
set -e
export KUBECONFIG=/etc/kubernetes/admin.conf KUBECACHEDIR="$PWD/cache"
timeout -k 1 20 kubectl --server "$server" --request-timeout 15s get --raw /metrics >metrics
grep '^apiserver_requested_deprecated_apis{' metrics || :
echo end
