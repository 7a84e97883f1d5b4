# follow: copies of the administrator's kubeconfig that were as it was are rewritten, after the rest of what was renewed is
# read. One that cannot be written is tried again by the next run, and is no reason to renew and restart anything again.
# shellcheck disable=SC2154 # user and aside stand in other scripts
follow() {
    rm -f "$aside/names"
    failed=''
    while IFS= read -r copy; do
        [ -e "$copy" ] || continue
        case $copy in
        /root/.kube/config) kk_put /etc/kubernetes/admin.conf "$copy" 600 "$(stat -c %u:%g "$copy")" ;;
        *) kk_put_as "$user" /etc/kubernetes/admin.conf "$copy" ;;
        esac || failed="$failed $copy"
    done <"$aside/copies"
    [ -z "$failed" ] || kk_fail "all is renewed, but copies of admin.conf cannot be written:$failed"
    rm -rf "$aside"
}
