# kubeadm first copies the present settings, and fails where there are none. Where this ends early, empty ones are fetched again.
[ -e /var/lib/kubelet/config.yaml ] || : >/var/lib/kubelet/config.yaml
kk_do kubeadm upgrade node phase kubelet-config
