# Stops containerd and removes what it keeps, and nothing else: its directory is of the user's choosing and may hold more.
# shellcheck disable=SC2154 # data stands before this script
systemctl disable -q --now containerd.service 2>/dev/null || :
pkill -KILL -f '^/usr/local/bin/containerd-shim-runc-v2 -namespace k8s.io' || :
awk '{ print $5 }' /proc/self/mountinfo | grep '^/run/containerd/' | sort -r | xargs -r -n 1 umount -l 2>/dev/null || :
[ ! -d "$data" ] ||
    (cd "$data" && find . -xdev \( -path './io.containerd.*' -o -path ./tmpmounts -o -path './tmpmounts/*' \) -delete)
empty /run/containerd
