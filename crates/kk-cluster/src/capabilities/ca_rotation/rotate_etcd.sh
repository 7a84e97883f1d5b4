# Makes etcd, and its clients on this host, trust the CAs of this round.
# shellcheck disable=SC2154 # round, ca and what is in rotation.sh stand before this script
[ "$round" != 1 ] || keep "$ca" etcd-ca.old
trusted etcd-ca >trusted.pem
kk_put trusted.pem "$ca" 644 root:root
