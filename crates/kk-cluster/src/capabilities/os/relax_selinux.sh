# Permissive, not disabled: labels stay correct, so a delete can enforce SELinux again without a relabel.
if [ -e /etc/selinux/config ]; then
    sed 's/^SELINUX=enforcing/SELINUX=permissive/' /etc/selinux/config >config
    kk_put config /etc/selinux/config 644 root:root
fi
setenforce 0
