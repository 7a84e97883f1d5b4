# kubeadm first copies the present settings, and fails without any. If this ends early, the empty settings are fetched again.
[ -e /var/lib/kubelet/config.yaml ] || : >/var/lib/kubelet/config.yaml
kk_do kubeadm upgrade node phase kubelet-config
