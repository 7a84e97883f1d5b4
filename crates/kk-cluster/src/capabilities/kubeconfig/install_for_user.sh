# Copies the administrator's kubeconfig for a user, as that user: root writes nothing where another user may have put links.
# shellcheck disable=SC2154 # user stands before this script
home=$(getent passwd "$user" | cut -d : -f 6)
if [ -d "$home" ]; then
    kk_put_as "$user" /etc/kubernetes/admin.conf "$home/.kube/config"
else
    kk_note "the user $user has no home directory, and gets no kubeconfig"
fi
