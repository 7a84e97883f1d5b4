# Removes pods through the runtime while it answers, because that also reverts the changes of CNI plugins. The remaining processes
# are killed and the remaining mounts are unmounted directly: only processes in the cgroups of this host's own pods (the pods of
# another kubelet, in a container of the host, are deeper), and only mounts below the directories of the kubelet and of the
# runtime's pods.
# shellcheck disable=SC2013,SC2044,SC2094 # names of cgroups and numbers have no spaces; the list is only read
if [ -S /run/containerd/containerd.sock ] && command -v crictl >/dev/null; then
    for pod in $(timeout 10 crictl pods -q 2>/dev/null); do
        timeout 30 crictl rmp -f "$pod" >/dev/null 2>&1 &
    done
    wait
fi
pods_below() { find "$1" -maxdepth "$2" -type d \( -name kubepods -o -name kubepods.slice \) 2>/dev/null || :; }
{
    # On a host that is itself a pod, this directory contains the cgroups of its siblings.
    grep -q ':/kubepods' /proc/1/cgroup || pods_below /sys/fs/cgroup 2
    while IFS=: read -r _ name path; do
        path=${path%/init.scope}
        [ -z "${path%/}" ] || pods_below "/sys/fs/cgroup/${name#name=}$path" 1
    done </proc/1/cgroup
} >pods
# Succeeds if it killed a process of a pod.
kill_pods() {
    killed=1
    while read -r pods; do
        for procs in $(find "$pods" -name cgroup.procs 2>/dev/null); do
            # 0 is a process of another process namespace.
            for pid in $(cat "$procs" 2>/dev/null); do
                [ "$pid" = 0 ] || { kill -KILL "$pid" 2>/dev/null && killed=0; } || :
            done
        done
    done <pods
    return $killed
}
# A process may start another one while processes are killed, and it exists until it has ended.
tries=25
while kill_pods && [ $((tries -= 1)) -gt 0 ]; do sleep 0.2; done
kubelet=$(readlink -f /var/lib/kubelet) || kubelet=/var/lib/kubelet
KK_D=$kubelet/ awk '
    index($5, ENVIRON["KK_D"]) == 1 { print $5 }
    $5 ~ "^/run/containerd/(io[.]containerd[.]runtime[.]v2[.]task/k8s[.]io|io[.]containerd[.]grpc[.]v1[.]cri)/" { print $5 }
' /proc/self/mountinfo | sort -r | while read -r mount; do
    # The kernel writes spaces in octal.
    mount=$(printf '%b' "$mount")
    umount "$mount" 2>/dev/null || umount -l "$mount" 2>/dev/null || :
done
# With the cgroup driver systemd, each pod is a slice; slices below kubepods.slice stop with it.
systemctl stop kubepods.slice 2>/dev/null || :
# A cgroup stays busy for a moment after its last process.
remove_cgroups() {
    left=0
    while read -r pods; do
        find "$pods" -depth -type d -exec rmdir {} \; 2>/dev/null || :
        [ ! -d "$pods" ] || left=1
    done <pods
    return $left
}
tries=25
until remove_cgroups || [ $((tries -= 1)) -le 0 ]; do sleep 0.2; done
