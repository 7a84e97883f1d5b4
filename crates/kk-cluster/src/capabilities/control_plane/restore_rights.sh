# If the group of administrators has lost its binding, or the role of this binding, administrators have no rights and cannot
# restore them. The CA can issue a kubeconfig that has all rights. Kubernetes creates the role only when kube-apiserver starts.
if ! kubectl --request-timeout 10s auth can-i '*' '*' -q; then
    mkdir -m 700 rights
    kubeadm init phase kubeconfig super-admin --config config.yaml --kubeconfig-dir "$PWD/rights"
    cat >rights.yaml <<'EOF'
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: cluster-admin
  labels: {kubernetes.io/bootstrapping: rbac-defaults}
  annotations: {rbac.authorization.kubernetes.io/autoupdate: "true"}
rules:
- {apiGroups: ["*"], resources: ["*"], verbs: ["*"]}
- {nonResourceURLs: ["*"], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "kubeadm:cluster-admins"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "kubeadm:cluster-admins"}]
EOF
    kubectl --kubeconfig rights/super-admin.conf apply --server-side --force-conflicts --field-manager=kk -f rights.yaml >/dev/null
fi
