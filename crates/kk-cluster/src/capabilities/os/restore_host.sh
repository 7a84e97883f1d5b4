# Restores what the record says, from its last line to the first; lines that match $keep stay.
# shellcheck disable=SC2154 # keep and enforce stand before this script
# The mark of a rotation of CAs goes with its cluster, also where the rest of the record stays.
rm -rf /etc/kubekey/rotation
if [ -n "$keep" ]; then kk_disown_all "$keep"; else kk_disown_all; fi
# SELinux' file is back by itself; what the kernel does now is not.
[ -z "$enforce" ] || setenforce 1 || :
systemctl reset-failed etcd.service kubelet.service containerd.service 2>/dev/null || :
# Small systems have no program hostname.
if [ -s /etc/hostname ] && [ "$(cat /etc/hostname)" != "$(uname -n)" ]; then
    if command -v hostname >/dev/null; then hostname "$(cat /etc/hostname)"; else cat /etc/hostname >/proc/sys/kernel/hostname; fi
fi
