#!/bin/bash
# The next minor version of Kubernetes for a cluster of kk-lab with one control plane and two workers, as somebody does it who
# knows how: kubeadm's own steps and the drains, in the order of Kubernetes' documentation. Programs and images are brought
# to all hosts at once before; nothing is verified that does not have to be, and etcd is not saved. `make bench` sets the variables:
#   NAMES IPS      of the hosts, separated by spaces, the control plane first
#   KEY            private key of root on the hosts
#   MIRROR         directory of the lab's mirror
#   KUBERNETES     the version that they get, without a leading v
# Prints `SECONDS <number>`: from the first connection until the last node is Ready with the new version.
set -euo pipefail
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT
# shellcheck disable=SC2153
read -ra names <<<"$NAMES"; read -ra ips <<<"$IPS"
first=${ips[0]}
programs=$MIRROR/dl.k8s.io/release/v$KUBERNETES/bin/linux/$(dpkg --print-architecture)
on() {
  local host=$1
  shift
  ssh -o LogLevel=ERROR -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o ControlMaster=auto \
    -o ControlPath="$work/%h" -o ControlPersist=120 -c aes128-gcm@openssh.com -i "$KEY" "root@$host" "$@"
}
kubectl() { on "$first" "KUBECONFIG=/etc/kubernetes/admin.conf kubectl $*"; }
seconds() { local ms=$(((${EPOCHREALTIME/./} - begun) / 1000)); printf '%d.%03d' $((ms / 1000)) $((ms % 1000)); }
lap() { printf '%-28s %8s s\n' "$1" "$(seconds)"; }

begun=${EPOCHREALTIME/./}
prepare() { # index of the host
  local images=kube-proxy
  [ "$1" != 0 ] || images="kube-apiserver kube-controller-manager kube-scheduler kube-proxy"
  tar -C "$programs" -cf - kubeadm kubelet kubectl | on "${ips[$1]}" "set -e
    mkdir -p /root/new; tar -xf - -C /root/new --no-same-owner; chmod 755 /root/new/*
    for image in $images; do crictl pull registry.k8s.io/\$image:v$KUBERNETES >/dev/null; done"
}
all=()
for i in "${!ips[@]}"; do prepare "$i" & all+=($!); done
for pid in "${all[@]}"; do wait "$pid"; done
lap "programs and images"
swap() { # index of the host
  on "${ips[$1]}" "set -e; cd /root/new; for name in kubeadm kubelet kubectl; do mv -f \$name /usr/local/bin/\$name; done; systemctl daemon-reload; systemctl restart kubelet"
  until kubectl "get node ${names[$1]} --no-headers" 2>/dev/null | grep -wE 'Ready(,SchedulingDisabled)?' | grep -qw "v$KUBERNETES"; do sleep 0.2; done
}
drain() { kubectl "drain ${names[$1]} --ignore-daemonsets --delete-emptydir-data >/dev/null 2>&1"; }
uncordon() { kubectl "uncordon ${names[$1]} >/dev/null"; }
ignore=--ignore-preflight-errors=Swap,SystemVerification,ImagePull,CoreDNSMigration,CoreDNSUnsupportedPlugins
on "$first" "cd /root/new && ./kubeadm upgrade apply v$KUBERNETES --yes --skip-phases=addon/coredns $ignore >/root/apply.log 2>&1 || { tail -n 20 /root/apply.log >&2; exit 1; }"
lap "kubeadm upgrade apply"
drain 0
swap 0
uncordon 0
lap "${names[0]}"
for i in "${!ips[@]}"; do
  [ "$i" != 0 ] || continue
  drain "$i"
  on "${ips[i]}" "cd /root/new && ./kubeadm upgrade node $ignore >/root/upgrade.log 2>&1 || { tail -n 20 /root/upgrade.log >&2; exit 1; }"
  swap "$i"
  uncordon "$i"
  lap "${names[i]}"
done
echo "SECONDS $(seconds)"
