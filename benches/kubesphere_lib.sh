# What the scripts share that measure ks-installer beside helm, on a control plane of a cluster that runs it. Everything is looked at by
# kubectl, whose start is in each time.
set -eu
export KUBECONFIG=/etc/kubernetes/admin.conf HOME=/root
cc="-n kubesphere-system clusterconfiguration ks-installer"
mounted=/run/kk-bench-ks
# A mount of containerd is known by its place: without the removal the next round finds it taken.
unmount() { ctr -n k8s.io images unmount --rm "$mounted" >/dev/null 2>&1 || :; }
trap unmount EXIT

# shellcheck disable=SC2086 # the words of cc are words
configure() { kubectl patch $cc --type merge -p "{\"spec\":$1}" >/dev/null; }
settled='{{if .status.observedGeneration}}{{if and (eq .status.observedGeneration .metadata.generation) (eq .status.phase "Ready")}}yes{{end}}{{end}}'
# shellcheck disable=SC2086
settle() { until [ "$(kubectl get $cc -o go-template="$settled")" = yes ]; do sleep 0.02; done; }
now() { date +%s%3N; }
measure() { # name, command…
  name=$1 begun=$(now)
  shift
  "$@"
  echo "$name $(($(now) - begun))"
}
to() { # spec
  configure "$1"
  settle
}
# The operator's image has the payload and helm, the very same ones.
mount_payload() {
  installer=$(ctr -n k8s.io images ls -q | grep -m 1 ':kk-')
  mkdir -p "$mounted"
  ctr -n k8s.io images mount "$installer" "$mounted" >/dev/null
}
helm() { "$mounted/usr/local/bin/helm" "$@" >/dev/null; }
