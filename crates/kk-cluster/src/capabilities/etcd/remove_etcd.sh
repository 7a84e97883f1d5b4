# etcd is killed instead of being stopped: a member without a quorum would first look for a new leader, and its data is removed
# anyway. The files of the member specify the data directory, because $wanted, from the cluster file, may have changed since.
# shellcheck disable=SC2154 # wanted stands before this script
systemctl disable -q etcd.service 2>/dev/null || :
systemctl stop --no-block etcd.service 2>/dev/null || :
systemctl kill -s KILL etcd.service 2>/dev/null || :
systemctl stop etcd.service 2>/dev/null || :
data=$(sed -n 's/^ETCD_DATA_DIR=//p' /etc/etcd.env 2>/dev/null | tail -n 1)
[ -n "$data" ] ||
    data=$(sed -n 's/^RequiresMountsFor=//p' /etc/systemd/system/etcd.service 2>/dev/null | tail -n 1)
[ -z "$data" ] || rm -rf --one-file-system "$data/member"
[ "$data" = "$wanted" ] || [ ! -e "$wanted/member" ] ||
    kk_note "$wanted/member is not of the etcd that was installed here, it stays"
