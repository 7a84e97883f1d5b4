# Publishes the settings of the cluster while its API answers.
kubeadm init phase upload-config kubeadm --config config.yaml
# An init that was killed at its end has not run its last phase, without which the credentials of the kubelet are not renewed.
grep -q kubelet-client-current.pem /etc/kubernetes/kubelet.conf ||
    kubeadm init phase kubelet-finalize all --config config.yaml
