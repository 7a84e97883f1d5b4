# kubeadm first copies the settings of before, and fails where they are gone. Where this ends early, empty ones are fetched again.
[ -e /var/lib/kubelet/config.yaml ] || : >/var/lib/kubelet/config.yaml
kk_do kubeadm upgrade node phase kubelet-config
