# Prints the lines of the environment file that a running member cannot change by itself, whether the member has data, and its
# previous addresses if a move is not finished.
set -e
[ -e /etc/etcd.env ] || exit 0
sed -n -e '/^ETCD_DATA_DIR=/p' -e '/^ETCD_INITIAL_ADVERTISE_PEER_URLS=/p' -e '/^ETCD_NAME=/p' /etc/etcd.env
data=$(sed -n 's/^ETCD_DATA_DIR=//p' /etc/etcd.env)
if [ -d "$data/member" ]; then echo MEMBER=yes; fi
if [ -e /etc/etcd-moving ]; then echo "MOVES_FROM=$(paste -s -d , /etc/etcd-moving)"; fi
