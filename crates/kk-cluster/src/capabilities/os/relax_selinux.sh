# Permissive, not disabled: labels stay in order, and a delete can turn it on again without a relabel.
if [ -e /etc/selinux/config ]; then
    sed 's/^SELINUX=enforcing/SELINUX=permissive/' /etc/selinux/config >config
    kk_put config /etc/selinux/config 644 root:root
fi
setenforce 0
