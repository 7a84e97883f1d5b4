# Lets kubeconfigs trust the same CAs, and defines what restart_control_plane.sh calls for the manifests.
# shellcheck disable=SC2154 # round, user and what is in rotation.sh stand before this script
for name in admin super-admin controller-manager scheduler; do
    [ ! -e "/etc/kubernetes/$name.conf" ] || trust_in "/etc/kubernetes/$name.conf"
done
# People's copies of admin.conf get what it has now; what they have added to them stays.
follow() {
    awk 'FILENAME == ARGV[1] { if ($1 ~ /-data:$/) old[$1] = $2; next }
        FILENAME == ARGV[2] { if ($1 ~ /-data:$/) new[$1] = $2; next }
        ($1 in old) && $2 == old[$1] { sub(/[^ ]+$/, ""); $0 = $0 new[$1] }
        { print }' "$state/admin.conf.$round" /etc/kubernetes/admin.conf "$1" >followed.conf
    rm -f "$1.kk-new"
    cp -p "$1" "$1.kk-new"
    cat followed.conf >"$1.kk-new"
    mv -f "$1.kk-new" "$1"
}
for home in /root "$(getent passwd "$user" | cut -d : -f 6)"; do
    [ ! -f "$home/.kube/config" ] || follow "$home/.kube/config"
done
edit_manifest() {
    manifest=$staged/kube-controller-manager.yaml signing=$pki/signing-ca.crt
    [ "$round" != 3 ] || signing=$pki/ca.crt
    sed "s|--cluster-signing-cert-file=.*|--cluster-signing-cert-file=$signing|" "$manifest" >manager.yaml
    cat manager.yaml >"$manifest"
}
