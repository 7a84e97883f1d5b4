# Restores the state in the record, from its last line to the first; lines that match $keep stay.
# shellcheck disable=SC2154 # keep, enforce and runtime stand before this script
# The mark of a CA rotation is removed with the cluster, even if other lines of the record stay.
rm -rf /etc/kubekey/rotation
if [ -n "$keep" ]; then kk_disown_all "$keep"; else kk_disown_all; fi
# The file of SELinux is restored already; the mode of the running kernel is not.
[ -z "$enforce" ] || setenforce 1 || :
systemctl reset-failed etcd.service kubelet.service "$runtime.service" 2>/dev/null || :
# Small systems have no command hostname.
if [ -s /etc/hostname ] && [ "$(cat /etc/hostname)" != "$(uname -n)" ]; then
    if command -v hostname >/dev/null; then hostname "$(cat /etc/hostname)"; else cat /etc/hostname >/proc/sys/kernel/hostname; fi
fi
