#!/bin/bash
# The least that a create can cost: for three fresh hosts of kk-lab, written by hand, without a single check. Everything
# that can be done at once is done at once; no step is repeated, verified or undone. The first host is the control
# plane, every host is a member of etcd. `make bench` sets the variables, from the cluster file that kk gets as well:
#   NAMES IPS          of the hosts, separated by spaces, the control plane first
#   KEY                private key of root on the hosts
#   MIRROR             directory of the lab's mirror          REGISTRY CA   registry and the file with its CA
#   KUBERNETES ETCD CONTAINERD RUNC CNI CRICTL COREDNS FLANNEL PLUGIN PAUSE   versions without a leading v
# Prints `SECONDS <number>`: from the first connection until nodes are Ready, CoreDNS is available, a Service answers.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT
# shellcheck disable=SC2153
read -ra names <<<"$NAMES"; read -ra ips <<<"$IPS"
first=${ips[0]}
last=$((${#ips[@]} - 1))
arch=$(dpkg --print-architecture)
pods=10.233.64.0/18 services=10.233.0.0/18 dns=10.233.0.10

connect="ssh -o LogLevel=ERROR -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o ControlMaster=auto
  -o ControlPath=$work/%h -o ControlPersist=120 -c aes128-gcm@openssh.com -i $KEY"
on() { local host=$1; shift; $connect "root@$host" "$@"; }
seconds() { local ms=$(((${EPOCHREALTIME/./} - begun) / 1000)); printf '%d.%03d' $((ms / 1000)) $((ms % 1000)); }
lap() { printf '%-28s %8s s\n' "$1" "$(seconds)"; }
at_once() { local pid failed=0; for pid in "$@"; do wait "$pid" || failed=1; done; return $failed; }

# ---- before the clock: what lies on the mirror, unpacked as the hosts need it
tree=$work/tree
mkdir -p "$tree"/{usr/local/bin,opt/cni/bin,etc/containerd/certs.d,etc/systemd/system}
github=$MIRROR/github.com
tar -C "$tree/usr/local" -xzf "$github/containerd/containerd/releases/download/v$CONTAINERD/containerd-$CONTAINERD-linux-$arch.tar.gz"
tar -C "$tree/opt/cni/bin" -xzf "$github/containernetworking/plugins/releases/download/v$CNI/cni-plugins-linux-$arch-v$CNI.tgz"
tar -C "$tree/usr/local/bin" -xzf "$github/kubernetes-sigs/cri-tools/releases/download/v$CRICTL/crictl-v$CRICTL-linux-$arch.tar.gz"
tar -C "$tree/usr/local/bin" --strip-components 1 -xzf "$github/etcd-io/etcd/releases/download/v$ETCD/etcd-v$ETCD-linux-$arch.tar.gz"
cp "$github/opencontainers/runc/releases/download/v$RUNC/runc.$arch" "$tree/usr/local/bin/runc"
for program in kubeadm kubelet kubectl; do
  cp "$MIRROR/dl.k8s.io/release/v$KUBERNETES/bin/linux/$arch/$program" "$tree/usr/local/bin/"
done
chmod 755 "$tree"/usr/local/bin/*
cat >"$tree/etc/containerd/config.toml" <<X
version = 4
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "registry.k8s.io/pause:$PAUSE"
[plugins."io.containerd.cri.v1.images".registry]
  config_path = "/etc/containerd/certs.d"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
X
for name in registry.k8s.io ghcr.io; do
  mkdir -p "$tree/etc/containerd/certs.d/$name"
  printf '[host."https://%s"]\n  ca = "/etc/containerd/certs.d/ca.crt"\n' "$REGISTRY" >"$tree/etc/containerd/certs.d/$name/hosts.toml"
done
cp "$CA" "$tree/etc/containerd/certs.d/ca.crt"
cat >"$tree/etc/systemd/system/containerd.service" <<X
[Service]
ExecStart=/usr/local/bin/containerd
Type=notify
Delegate=yes
KillMode=process
LimitNOFILE=1048576
[Install]
WantedBy=multi-user.target
X
cat >"$tree/etc/systemd/system/kubelet.service" <<X
[Service]
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
ExecStart=/usr/local/bin/kubelet --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf --config=/var/lib/kubelet/config.yaml \$KUBELET_KUBEADM_ARGS
Restart=always
RestartSec=1
[Install]
WantedBy=multi-user.target
X
sed "s#NETWORK#$pods#; s#\"API\"#\"$first\"#; s#FLANNEL#ghcr.io/flannel-io/flannel:v$FLANNEL#; s#PLUGIN#ghcr.io/flannel-io/flannel-cni-plugin:v$PLUGIN#" \
  "$here/flannel.yaml" | sed '1d' >"$work/flannel.yaml"

members='' endpoints='' sans='' hosts=''
for i in "${!ips[@]}"; do
  members+="${members:+,}${names[i]}=https://${ips[i]}:2380"
  endpoints+="${endpoints:+, }\"https://${ips[i]}:2379\""
  sans+=",IP:${ips[i]},DNS:${names[i]}"
  hosts+="${ips[i]} ${names[i]}\n"
done
cat >"$work/init.yaml" <<X
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
bootstrapTokens: [{token: abcdef.0123456789abcdef}]
localAPIEndpoint: {advertiseAddress: $first}
nodeRegistration: {criSocket: unix:///run/containerd/containerd.sock, imagePullPolicy: Never, name: ${names[0]}}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v$KUBERNETES
encryptionAlgorithm: ECDSA-P256
controlPlaneEndpoint: $first:6443
dns: {imageTag: v$COREDNS}
etcd: {external: {endpoints: [$endpoints], caFile: /etc/ssl/etcd/ca.crt, certFile: /etc/ssl/etcd/e.crt, keyFile: /etc/ssl/etcd/e.key}}
networking: {podSubnet: $pods, serviceSubnet: $services}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
failSwapOn: false
failCgroupV1: false
evictionHard: {nodefs.available: 500Mi, imagefs.available: 500Mi, memory.available: 100Mi}
imageGCHighThresholdPercent: 100
---
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
conntrack: {maxPerCore: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
X
ignore="--ignore-preflight-errors=Swap,SystemVerification,ImagePull"

# ---- the clock runs
begun=${EPOCHREALTIME/./}
certificates() { # of etcd, on this machine, while files travel
  cd "$work"
  openssl ecparam -name prime256v1 -genkey -noout -out ca.key
  openssl req -x509 -new -key ca.key -subj /CN=etcd -days 3650 -out ca.crt
  openssl ecparam -name prime256v1 -genkey -noout -out e.key
  openssl req -new -key e.key -subj /CN=etcd -out e.csr 2>/dev/null
  openssl x509 -req -in e.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 3650 -out e.crt 2>/dev/null \
    -extfile <(printf 'subjectAltName=IP:127.0.0.1%s\nextendedKeyUsage=serverAuth,clientAuth' "$sans")
  touch certificates-made
}
etcd_unit() { # address, name
  cat <<X
[Service]
Type=notify
ExecStart=/usr/local/bin/etcd --name $2 --data-dir /var/lib/etcd/d --listen-peer-urls https://$1:2380 --initial-advertise-peer-urls https://$1:2380 --listen-client-urls https://$1:2379,https://127.0.0.1:2379 --advertise-client-urls https://$1:2379 --initial-cluster $members --client-cert-auth --peer-client-cert-auth --trusted-ca-file /etc/ssl/etcd/ca.crt --cert-file /etc/ssl/etcd/e.crt --key-file /etc/ssl/etcd/e.key --peer-trusted-ca-file /etc/ssl/etcd/ca.crt --peer-cert-file /etc/ssl/etcd/e.crt --peer-key-file /etc/ssl/etcd/e.key
[Install]
WantedBy=multi-user.target
X
}
pull() { # address, image
  on "$1" "ctr -n k8s.io images pull --local --hosts-dir /etc/containerd/certs.d '$2' >/dev/null"
}
prepare() { # index of the host
  local i=$1 host=${ips[$1]} programs images image
  # 1. the runtime and etcd, which start at once
  tar -C "$tree" -cf - etc opt usr/local/bin/{containerd,containerd-shim-runc-v2,runc,ctr,etcd} | on "$host" "set -e
    tar -xf - -C / --no-same-owner; systemctl daemon-reload; systemctl enable -q --now containerd; systemctl enable -q kubelet
    printf '$hosts' >>/etc/hosts; echo 1 >/proc/sys/net/ipv4/ip_forward; sysctl -qw net.bridge.bridge-nf-call-iptables=1"
  until [ -e "$work/certificates-made" ]; do sleep 0.02; done
  etcd_unit "$host" "${names[i]}" | on "$host" "cat >/etc/systemd/system/etcd.service"
  tar -C "$work" -cf - ca.crt e.crt e.key | on "$host" "set -e
    mkdir -p /etc/ssl/etcd; tar -xf - -C /etc/ssl/etcd; systemctl enable -q etcd; systemctl start --no-block etcd"
  # 2. the other programs beside the images, and these in the order of need
  tar -C "$tree" -cf - usr/local/bin/{kubeadm,kubelet,kubectl,crictl} | on "$host" "tar -xf - -C / --no-same-owner" & programs=$!
  {
    images="registry.k8s.io/pause:$PAUSE"
    if [ "$i" = 0 ]; then
      for image in kube-apiserver kube-controller-manager kube-scheduler; do images+=" registry.k8s.io/$image:v$KUBERNETES"; done
    fi
    for image in $images; do pull "$host" "$image"; done
    touch "$work/first-images-$i"
    for image in ghcr.io/flannel-io/flannel:v$FLANNEL ghcr.io/flannel-io/flannel-cni-plugin:v$PLUGIN "registry.k8s.io/kube-proxy:v$KUBERNETES"; do
      pull "$host" "$image"
    done
    touch "$work/node-images-$i"
    pull "$host" "registry.k8s.io/coredns/coredns:v$COREDNS"
  } & images=$!
  wait $programs
  touch "$work/programs-$i"
  if [ "$i" != 0 ]; then
    until [ -s "$work/ca64" ] && [ -e "$work/node-images-$i" ]; do sleep 0.05; done
    # Discovery by a file with the CA: no polling for a signature.
    on "$host" "cat >/root/discovery && kubeadm join --discovery-file /root/discovery --tls-bootstrap-token abcdef.0123456789abcdef $ignore >/root/join.log 2>&1 || { tail -n 5 /root/join.log >&2; exit 1; }" <<X
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://$first:6443", certificate-authority-data: $(cat "$work/ca64")}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: abcdef.0123456789abcdef}}]
current-context: c
X
  fi
  wait $images
}
certificates & all=($!)
for i in "${!ips[@]}"; do prepare "$i" & all+=($!); done
until [ -e "$work/programs-0" ] && [ -e "$work/first-images-0" ]; do sleep 0.02; done
lap "control plane prepared"
on "$first" "cat >/root/init.yaml && { kubeadm init --config /root/init.yaml --skip-phases=addon $ignore >/root/init.log 2>&1 || { tail -n 20 /root/init.log >&2; exit 1; }; }
  base64 -w0 /etc/kubernetes/pki/ca.crt" <"$work/init.yaml" >"$work/ca64.new"
mv "$work/ca64.new" "$work/ca64"
lap "kubeadm init"
at_once "${all[@]}"
lap "joined"
# Kubelets get a second to learn of Services before pods come: else their first try fails and is repeated late.
on "$first" "export KUBECONFIG=/etc/kubernetes/admin.conf
  until [ \$(kubectl get nodes --no-headers | wc -l) -gt $last ]; do sleep 0.1; done; sleep 1"
on "$first" "export KUBECONFIG=/etc/kubernetes/admin.conf
  kubeadm init phase addon all --config /root/init.yaml >/dev/null 2>&1 & kubectl apply -f - >/dev/null; wait" <"$work/flannel.yaml"
lap "add-ons applied"
on "$first" "export KUBECONFIG=/etc/kubernetes/admin.conf
  until [ \$(kubectl get nodes --no-headers | grep -cw Ready) -gt $last ]; do sleep 0.2; done"
lap "nodes Ready"
on "$first" "export KUBECONFIG=/etc/kubernetes/admin.conf; kubectl -n kube-system rollout status deployment/coredns --timeout=120s >/dev/null"
lap "CoreDNS available"
on "$first" "for try in \$(seq 150); do curl -s -m 2 -o /dev/null http://$dns:9153/metrics && exit; sleep 0.2; done; exit 1"
lap "a Service answers"
echo "SECONDS $(seconds)"
