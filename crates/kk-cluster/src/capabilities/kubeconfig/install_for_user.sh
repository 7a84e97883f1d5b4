# Copies the administrator's kubeconfig for a user, as that user: root writes nothing where another user may have put links.
# shellcheck disable=SC2154 # user stands before this script
home=$(getent passwd "$user" | cut -d : -f 6)
if ! [ -d "$home" ]; then
    kk_note "the user $user has no home directory, and gets no kubeconfig"
elif may_become_root; then
    kk_put_as "$user" /etc/kubernetes/admin.conf "$home/.kube/config"
else
    kk_note "sudo asks $user for a password, a kubeconfig would not: $user gets none (use sudo kubectl, or the kubeconfig that kk saves)"
fi
