//! The API server's certificate.

/// Makes it again, with the names that the file asks for: kubeadm keeps one that is there.
pub(super) const RENEW_CERTIFICATE: &str =
    "rm -f /etc/kubernetes/pki/apiserver.crt /etc/kubernetes/pki/apiserver.key
kubeadm init phase certs apiserver --config config.yaml
";
