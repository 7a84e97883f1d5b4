//! The damages as data: how a running cluster is broken, and the check that it is repaired.

/// One thing that is broken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Damage {
    pub(super) name: &'static str,
    /// Where `breaks` and `whole` run, as shell text; `$K` is kubectl where there is a control plane.
    pub(super) host: &'static str,
    pub(super) breaks: &'static str,
    /// Succeeds when it is repaired.
    pub(super) whole: &'static str,
}

const fn at(name: &'static str, host: &'static str, breaks: &'static str, whole: &'static str) -> Damage {
    Damage { name, host, breaks, whole }
}

/// In this order; each begins with a healthy cluster.
pub(super) const ALL: &[Damage] = &[
    // Certificates and kubeconfigs.
    at(
        "kubelet-client-certificate-of-the-api-server-gone",
        "node1",
        "rm /etc/kubernetes/pki/apiserver-kubelet-client.crt",
        "test -s /etc/kubernetes/pki/apiserver-kubelet-client.crt",
    ),
    at(
        "kubeconfig-of-the-controller-manager-gone",
        "node1",
        "rm /etc/kubernetes/controller-manager.conf",
        "grep -q system:kube-controller-manager /etc/kubernetes/controller-manager.conf",
    ),
    at("admin-kubeconfig-gone", "node1", "rm /etc/kubernetes/admin.conf", "$K get nodes"),
    at(
        "certificate-of-an-etcd-member-gone",
        "node2",
        "rm /etc/ssl/etcd/ssl/member-node2.pem",
        "test -s /etc/ssl/etcd/ssl/member-node2.pem",
    ),
    at(
        "kubelet-credentials-gone",
        "node2",
        "rm -f /var/lib/kubelet/pki/kubelet-client-*; systemctl restart kubelet || true",
        "test -s /var/lib/kubelet/pki/kubelet-client-current.pem && systemctl is-active kubelet",
    ),
    at(
        "kubelet-kubeconfig-gone",
        "node3",
        "rm /etc/kubernetes/kubelet.conf; systemctl restart kubelet || true",
        "test -s /etc/kubernetes/kubelet.conf && systemctl is-active kubelet",
    ),
    // A join that was killed before kubeadm finished.
    at(
        "token-of-the-join-left",
        "node3",
        ": >/etc/kubernetes/kubekey/joining; echo token >/etc/kubernetes/bootstrap-kubelet.conf",
        "test ! -e /etc/kubernetes/kubekey/joining && test ! -e /etc/kubernetes/bootstrap-kubelet.conf",
    ),
    // Static pods.
    at(
        "static-pod-gone",
        "node1",
        "rm /etc/kubernetes/manifests/kube-scheduler.yaml",
        "test -s /etc/kubernetes/manifests/kube-scheduler.yaml",
    ),
    at(
        "static-pod-of-the-api-server-gone",
        "node1",
        "rm /etc/kubernetes/manifests/kube-apiserver.yaml; sleep 3",
        "$K get --raw /readyz",
    ),
    at(
        "static-pod-edited",
        "node1",
        "sed -i 's/- --leader-elect=true/- --leader-elect=perhaps/' /etc/kubernetes/manifests/kube-controller-manager.yaml",
        "grep -q -- '--leader-elect=true' /etc/kubernetes/manifests/kube-controller-manager.yaml",
    ),
    // Units and programs.
    at(
        "kubelet-settings-of-the-unit-gone",
        "node2",
        "rm /etc/systemd/system/kubelet.service.d/10-kubeadm.conf; systemctl daemon-reload; systemctl restart kubelet || true",
        "test -s /etc/systemd/system/kubelet.service.d/10-kubeadm.conf && systemctl is-active kubelet",
    ),
    at(
        "kubelet-configuration-gone",
        "node2",
        "rm /var/lib/kubelet/config.yaml; systemctl restart kubelet || true",
        "test -s /var/lib/kubelet/config.yaml && systemctl is-active kubelet",
    ),
    at(
        "kubelet-configuration-empty",
        "node3",
        ": >/var/lib/kubelet/config.yaml; systemctl restart kubelet || true",
        "test -s /var/lib/kubelet/config.yaml && systemctl is-active kubelet",
    ),
    at(
        "containerd-unit-edited",
        "node3",
        "sed -i 's/^ExecStart=.*/ExecStart=\\/bin\\/false/' /etc/systemd/system/containerd.service; systemctl daemon-reload; systemctl restart containerd || true",
        "grep -q 'ExecStart=.*containerd' /etc/systemd/system/containerd.service && systemctl is-active containerd",
    ),
    at(
        "etcd-unit-gone",
        "node3",
        "systemctl stop etcd; rm /etc/systemd/system/etcd.service; systemctl daemon-reload",
        "systemctl is-active etcd && systemctl is-enabled etcd",
    ),
    at(
        "kubelet-stopped-and-disabled",
        "node3",
        "systemctl disable --quiet --now kubelet",
        "systemctl is-active kubelet && systemctl is-enabled kubelet",
    ),
    at(
        "containerd-killed",
        "node2",
        "systemctl kill --signal KILL containerd; systemctl stop containerd",
        "systemctl is-active containerd",
    ),
    at(
        "etcd-in-a-crash-loop",
        "node2",
        "echo ETCD_HEARTBEAT_INTERVAL=never >>/etc/etcd.env; systemctl restart etcd || true",
        "systemctl is-active etcd && ! grep -q never /etc/etcd.env",
    ),
    at("program-replaced", "node3", "echo '#!/bin/false' >/usr/local/bin/crictl", "crictl --version"),
    // Network of the nodes.
    at(
        "cni-configuration-gone",
        "node2",
        "rm -r /etc/cni/net.d; systemctl restart containerd",
        "ls /etc/cni/net.d/*.conflist",
    ),
    at("cni-program-gone", "node3", "rm /opt/cni/bin/bridge", "test -x /opt/cni/bin/bridge"),
    // All of the pods' links on a node are removed. Afterwards a pod there answers again, and reaches the API through its
    // Service.
    at(
        "links-of-pods-gone",
        "node2",
        "ip link delete flannel.1; ip link delete cni0",
        "ip address show dev flannel.1 && ip address show dev cni0 && [ -n \"$(ls /sys/class/net/cni0/brif)\" ]",
    ),
    at(
        "routes-to-pods-of-other-nodes-gone",
        "node3",
        "ip route show | grep ' dev flannel.1 ' | while read -r to _; do ip route delete \"$to\"; done",
        "[ \"$(ip route show | grep -c ' dev flannel.1 ')\" = 2 ]",
    ),
    at(
        "packet-filter-rules-gone",
        "node2",
        "iptables -F; iptables -t nat -F",
        "curl -ksS -m 5 -o /dev/null https://10.233.0.1:443/livez",
    ),
    at(
        "hosts-block-gone",
        "node2",
        "sed -i '/kubekey hosts BEGIN/,/kubekey hosts END/d' /etc/hosts; ! grep -q node1 /etc/hosts",
        "grep -q node1 /etc/hosts",
    ),
    at(
        "sysctl-changed",
        "node2",
        "sysctl -qw net.ipv4.ip_forward=0; sed -i '/ip_forward/d' /etc/sysctl.d/*kubekey*",
        "test \"$(cat /proc/sys/net/ipv4/ip_forward)\" = 1 && grep -q ip_forward /etc/sysctl.d/*kubekey*",
    ),
    at(
        "list-of-modules-gone",
        "node3",
        "rm /etc/modules-load.d/*kubekey*",
        "ls /etc/modules-load.d/*kubekey*",
    ),
    at(
        "registry-settings-gone",
        "node3",
        "rm -r /etc/containerd/certs.d",
        "ls /etc/containerd/certs.d/registry.k8s.io/hosts.toml",
    ),
    // Objects of the cluster.
    at(
        "coredns-configuration-gone",
        "node1",
        "$K -n kube-system delete configmap coredns",
        "$K -n kube-system get configmap coredns",
    ),
    at(
        "coredns-service-gone",
        "node1",
        "$K -n kube-system delete service kube-dns coredns --ignore-not-found",
        "$K -n kube-system get service -l k8s-app=kube-dns -o name | grep -q .",
    ),
    at(
        "coredns-deployment-gone",
        "node1",
        "$K -n kube-system delete deployment coredns",
        "$K -n kube-system get deployment coredns",
    ),
    at(
        "kube-proxy-gone",
        "node1",
        "$K -n kube-system delete daemonset kube-proxy",
        "$K -n kube-system get daemonset kube-proxy",
    ),
    at(
        "flannel-gone",
        "node1",
        "$K get daemonset -A -o name | grep -q flannel && $K delete daemonset -A --field-selector metadata.name=kube-flannel-ds",
        "$K get daemonset -A -o name | grep -q flannel",
    ),
    at(
        "bootstrap-rights-gone",
        "node1",
        "$K delete clusterrolebinding kubeadm:get-nodes kubeadm:kubelet-bootstrap kubeadm:node-autoapprove-bootstrap",
        "$K get clusterrolebinding kubeadm:get-nodes kubeadm:kubelet-bootstrap kubeadm:node-autoapprove-bootstrap",
    ),
    at(
        "label-and-taint-of-the-control-plane-gone",
        "node1",
        "$K label node node1 node-role.kubernetes.io/control-plane-; $K taint node node1 node-role.kubernetes.io/control-plane:NoSchedule-",
        "$K get node node1 -o yaml | grep -q 'key: node-role.kubernetes.io/control-plane'",
    ),
    at("node-deleted", "node1", "$K delete node node3", "$K get node node3"),
    at(
        "kubeadm-configuration-gone",
        "node1",
        "$K -n kube-system delete configmap kubeadm-config",
        "$K -n kube-system get configmap kubeadm-config",
    ),
    at(
        "kubelet-settings-of-the-cluster-gone",
        "node1",
        "$K -n kube-system delete configmap kubelet-config",
        "$K -n kube-system get configmap kubelet-config",
    ),
    at(
        "taint-of-the-control-plane-gone",
        "node1",
        "$K taint node node1 node-role.kubernetes.io/control-plane:NoSchedule-",
        "$K get node node1 -o yaml | grep -q 'key: node-role.kubernetes.io/control-plane'",
    ),
    at(
        "rights-of-administrators-gone",
        "node1",
        "$K delete clusterrolebinding kubeadm:cluster-admins",
        "$K get clusterrolebinding kubeadm:cluster-admins",
    ),
    at(
        "data-of-an-etcd-member-gone-while-it-starts",
        "node2",
        "systemctl stop etcd; rm -rf /var/lib/etcd/*; systemctl start --no-block etcd; sleep 8",
        "systemctl is-active etcd && ls /var/lib/etcd/member/wal/*.wal",
    ),
    // Last, because the member joins again without data.
    at(
        "data-of-an-etcd-member-gone",
        "node3",
        "systemctl stop etcd; rm -rf /var/lib/etcd/*",
        "systemctl is-active etcd && ls /var/lib/etcd/member/wal/*.wal",
    ),
];
