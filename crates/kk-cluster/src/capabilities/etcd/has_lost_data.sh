# Whether the member of this host has lost its data: there is no write-ahead log, or etcd exits because its log is shorter than
# the part that it has acknowledged (the message is from etcd's raft library).
# shellcheck disable=SC2154 # data stands before this script
set -e
wal=$data/member/wal
if [ ! -d "$wal" ]; then
    echo yes
    exit
fi
ls "$wal" >wal.list
if ! grep -q '\.wal$' wal.list; then
    echo yes
elif ! systemctl -q is-active etcd.service && journalctl -u etcd.service -n 60 -o cat |
    grep -q 'tocommit(.*Was the raft log corrupted, truncated, or lost'; then
    echo yes
else
    echo no
fi
