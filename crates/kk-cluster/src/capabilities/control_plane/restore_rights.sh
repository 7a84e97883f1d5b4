# Administrators whose group has lost its binding may do nothing, not even bind it again. The CA makes one who may.
if ! kubectl --request-timeout 10s auth can-i '*' '*' -q; then
    mkdir -m 700 rights
    kubeadm init phase kubeconfig super-admin --config config.yaml --kubeconfig-dir "$PWD/rights"
    kubectl create clusterrolebinding kubeadm:cluster-admins --clusterrole cluster-admin \
        --group kubeadm:cluster-admins --dry-run=client -o yaml >binding.yaml
    kubectl --kubeconfig rights/super-admin.conf apply -f binding.yaml >/dev/null
fi
