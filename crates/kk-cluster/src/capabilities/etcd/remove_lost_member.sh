# Removes this host's member, whose data is gone, from the list. One that was only added stays: it can start as it is.
# shellcheck disable=SC2154 # data stands before this script
awk '$1 !~ /^#/ && $2 != "/" { print $2 }' "${KK_ROOT-}/etc/fstab" 2>/dev/null | while read -r mount; do
    case $data/ in
    "${mount%/}"/*) mountpoint -q "$mount" || kk_fail "etcd's data is gone because $mount is not mounted" ;;
    esac
done
systemctl stop etcd.service 2>/dev/null || :
remove() {
    list || return
    for id in $(own); do
        if [ "$id" != "$(field 1)" ] || [ -n "$(field 5)" ]; then
            ctl member remove "$id" >/dev/null || return
        fi
    done
}
persistently remove
