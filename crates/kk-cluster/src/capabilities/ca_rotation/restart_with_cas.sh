# Makes kubeconfigs trust the same CAs, and defines the function that restart_control_plane.sh calls to write the manifests.
# shellcheck disable=SC2154 # round, user and what is in rotation.sh stand before this script
for name in admin super-admin controller-manager scheduler; do
    [ ! -e "/etc/kubernetes/$name.conf" ] || trust_in "/etc/kubernetes/$name.conf"
done
# Users' copies of admin.conf get its current certificates and keys; entries that users have added stay.
follow() { # COPY: prints its new content
    awk 'FILENAME == ARGV[1] { if ($1 ~ /-data:$/) old[$1] = $2; next }
        FILENAME == ARGV[2] { if ($1 ~ /-data:$/) new[$1] = $2; next }
        ($1 in old) && $2 == old[$1] { sub(/[^ ]+$/, ""); $0 = $0 new[$1] }
        { print }' "$state/admin.conf.$round" /etc/kubernetes/admin.conf "$1"
}
copy=/root/.kube/config
if [ -f "$copy" ]; then
    follow "$copy" >followed.conf
    rm -f "$copy.kk-new"
    cp -p "$copy" "$copy.kk-new"
    cat followed.conf >"$copy.kk-new"
    mv -f "$copy.kk-new" "$copy"
fi
# The copy of another user is read and written as that user. If sudo asks this user for a password, the copy is left.
copy=$(getent passwd "$user" | cut -d : -f 6)/.kube/config
if [ "$copy" = /root/.kube/config ] || ! [ -f "$copy" ]; then
    :
elif may_become_root; then
    kk_read_as "$user" "$copy"
    follow kk-as.content >followed.conf
    kk_file_as "$user" put "$copy" "$kk_mode" followed.conf
elif [ "$round" = 1 ]; then
    kk_note "$user may not run every command as root without a password: $copy is left, and becomes invalid with the old CA"
fi
edit_manifest() {
    manifest=$staged/kube-controller-manager.yaml signing=$pki/signing-ca.crt
    [ "$round" != 3 ] || signing=$pki/ca.crt
    sed "s|--cluster-signing-cert-file=.*|--cluster-signing-cert-file=$signing|" "$manifest" >manager.yaml
    cat manager.yaml >"$manifest"
}
