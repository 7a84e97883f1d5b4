# ask_from_pod.sh NAME TARGET SECONDS, on a node: one HTTP request to TARGET from the first container called NAME, of SECONDS
# at most, with the node's curl in the pod's network and with the pod's resolver, because small images hold no HTTP client.
set -eu
export CONTAINER_RUNTIME_ENDPOINT=unix:///run/containerd/containerd.sock
id=$(crictl ps -q --name "^$1\$" | head -n 1)
pid=$(crictl inspect --output go-template --template '{{.info.pid}}' "$id")
resolver=$(mktemp)
trap 'rm -f "$resolver"' EXIT
cat "/proc/$pid/root/etc/resolv.conf" >"$resolver"
nsenter --target "$pid" --net unshare --mount sh -euc '
  mount --bind "$1" /etc/resolv.conf
  exec curl --silent --show-error --max-time "$3" "http://$2:8080/health"' sh "$resolver" "$2" "$3"
