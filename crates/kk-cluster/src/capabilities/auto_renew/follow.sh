# follow: copies of the administrator's kubeconfig that were as it was are rewritten, after the rest of what was renewed is
# read. One that cannot be written is tried again by the next run, and is no reason to renew and restart anything again.
# The copy of a user whom sudo asks for a password is left, so that it expires.
# shellcheck disable=SC2154 # user and aside stand in other scripts
follow() {
    rm -f "$aside/names"
    failed=''
    while IFS= read -r copy; do
        [ -e "$copy" ] || continue
        case $copy in
        /root/.kube/config) kk_put /etc/kubernetes/admin.conf "$copy" 600 "$(stat -c %u:%g "$copy")" ;;
        *) if may_become_root; then
            kk_put_as "$user" /etc/kubernetes/admin.conf "$copy"
        else
            echo "not renewed, because $user may not run every command as root without a password: $copy"
        fi ;;
        esac || failed="$failed $copy"
    done <"$aside/copies"
    [ -z "$failed" ] || kk_fail "all is renewed, but copies of admin.conf cannot be written:$failed"
    rm -rf "$aside"
}
