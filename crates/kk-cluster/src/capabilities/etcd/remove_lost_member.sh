# Removes this host's member, whose data is lost, from the list. A member that was added and never started stays: it can start as
# it is.
# shellcheck disable=SC2154 # data stands before this script
# Prints mount points from fstab, from mount units of systemd, and of the data when the member was last healthy.
mounts() {
    awk '$1 !~ /^#/ && $2 != "/" { print $2 }' "${KK_ROOT-}/etc/fstab" 2>/dev/null || :
    systemctl list-unit-files -t mount --no-legend 2>/dev/null | awk '$2 != "masked" { print $1 }' |
        while read -r unit; do
            systemctl show -p Where -- "$unit" 2>/dev/null | sed -n 's/^Where=//p'
        done
    cat "${KK_ROOT-}/etc/etcd-mount" 2>/dev/null || :
}
mounts | while read -r mount; do
    case $data/ in
    "${mount%/}"/*)
        [ "$mount" = / ] || mountpoint -q "$mount" || kk_fail "etcd's data is gone because $mount is not mounted"
        ;;
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
