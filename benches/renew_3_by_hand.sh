#!/bin/bash
# New certificates for a cluster of kk-lab with one control plane and etcd on three hosts, as somebody does it who knows how:
# written by hand, without a single check before. What kk renews, this renews: all that kubeadm has made on the control plane, and the
# certificates of etcd's members, which start again one after the other. `make bench` sets the variables:
#   NAMES IPS   of the hosts, separated by spaces, the control plane first
#   KEY         private key of root on the hosts
# Prints `SECONDS <number>`: from the first connection until the API server is ready with its new certificate.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2153
read -ra names <<<"$NAMES"; read -ra ips <<<"$IPS"
on() {
  local host=$1
  shift
  ssh -o LogLevel=ERROR -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o ControlMaster=auto \
    -o ControlPath="$work/%h" -o ControlPersist=60 -i "$KEY" "root@$host" "$@"
}
begun=${EPOCHREALTIME/./}
directory=/etc/ssl/etcd/ssl
for i in "${!ips[@]}"; do
  # The key of etcd's CA is on each host of etcd.
  on "${ips[i]}" "NAME=${names[i]} DIRECTORY=$directory bash -s" <<'X'
set -euo pipefail
cd "$DIRECTORY"
for certificate in "member-$NAME.pem" apiserver-etcd-client.pem; do
  [ -e "$certificate" ] || continue
  key=${certificate%.pem}-key.pem
  openssl x509 -x509toreq -copy_extensions copyall -in "$certificate" -signkey "$key" -out request.pem 2>/dev/null
  openssl x509 -req -in request.pem -CA ca.pem -CAkey ca-key.pem -CAcreateserial -days 365 -copy_extensions copyall -out new.pem 2>/dev/null
  cat new.pem >"$certificate"
done
rm -f request.pem new.pem ca.srl
systemctl restart etcd
X
done
on "${ips[0]}" "IP=${ips[0]} bash -s" <<'X'
set -euo pipefail
kubeadm certs renew all >/dev/null
cd /etc/kubernetes/manifests
mkdir -p ../away
mv kube-apiserver.yaml kube-controller-manager.yaml kube-scheduler.yaml ../away
# An API server that is asked to end waits for its watchers, for 30 s.
sleep 1
crictl stop --timeout 1 "$(crictl ps -q --name kube-apiserver)" >/dev/null 2>&1 || true
# As the documentation of Kubernetes has it: until the kubelet has ended them.
until [ -z "$(crictl ps -q --name 'kube-(apiserver|controller-manager|scheduler)')" ]; do sleep 0.2; done
mv ../away/* .
rmdir ../away
until kubectl --kubeconfig /etc/kubernetes/admin.conf --server "https://$IP:6443" get --raw /readyz >/dev/null 2>&1; do sleep 0.2; done
X
ms=$(((${EPOCHREALTIME/./} - begun) / 1000))
printf 'SECONDS %d.%03d\n' $((ms / 1000)) $((ms % 1000))
