# Publishes the settings of the cluster, while its API answers.
kubeadm init phase upload-config kubeadm --config config.yaml
# An init that was killed at its very end has not done its last phase: without it, the kubelet's credentials are not
# renewed.
grep -q kubelet-client-current.pem /etc/kubernetes/kubelet.conf ||
    kubeadm init phase kubelet-finalize all --config config.yaml
