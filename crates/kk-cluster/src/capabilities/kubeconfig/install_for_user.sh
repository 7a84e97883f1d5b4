# Copies the administrator's kubeconfig for a user.
# shellcheck disable=SC2154 # user stands before this script
home=$(getent passwd "$user" | cut -d : -f 6)
owner=$user:$(id -gn "$user")
[ -d "$home/.kube" ] || kk_dir "$home/.kube" 700 "$owner"
kk_put /etc/kubernetes/admin.conf "$home/.kube/config" 600 "$owner"
