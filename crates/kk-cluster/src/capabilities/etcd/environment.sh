# The lines of the environment file that cannot change, and whether the member that it describes has data.
set -e
[ -e /etc/etcd.env ] || exit 0
sed -n -e '/^ETCD_DATA_DIR=/p' -e '/^ETCD_INITIAL_ADVERTISE_PEER_URLS=/p' -e '/^ETCD_NAME=/p' /etc/etcd.env
data=$(sed -n 's/^ETCD_DATA_DIR=//p' /etc/etcd.env)
if [ -d "$data/member" ]; then echo MEMBER=yes; fi
