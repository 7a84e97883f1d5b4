# Killed, not asked to stop: a member without a quorum would first look for a new leader, and its data goes anyway.
# shellcheck disable=SC2154 # data stands before this script
systemctl disable -q etcd.service 2>/dev/null || :
systemctl stop --no-block etcd.service 2>/dev/null || :
systemctl kill -s KILL etcd.service 2>/dev/null || :
systemctl stop etcd.service 2>/dev/null || :
rm -rf --one-file-system "$data/member"
