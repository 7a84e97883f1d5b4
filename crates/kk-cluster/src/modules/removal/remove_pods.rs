//! Remove pods with their containers, networks and mounts.

use std::time::Duration;

use kk_engine::{HostWork, Task, actions::Command};

use super::Removal;

/// Through the runtime while it answers, because that also takes back what CNI plugins made. What is left after it, or
/// without it, is ended and unmounted by hand: only processes in the cgroups of pods, only mounts below the kubelet's
/// and the runtime's own folders.
const SCRIPT: &str = r#"
if [ -S /run/containerd/containerd.sock ] && command -v crictl >/dev/null; then
    for pod in $(timeout 10 crictl pods -q 2>/dev/null); do
        timeout 30 crictl rmp -f "$pod" >/dev/null 2>&1 &
    done
    wait
fi
for procs in $(find /sys/fs/cgroup -path '*kubepods*' -name cgroup.procs 2>/dev/null); do
    for pid in $(cat "$procs" 2>/dev/null); do kill -KILL "$pid" 2>/dev/null || :; done
done
awk '{ print $5 }' /proc/self/mountinfo | grep -E '^(/var/lib/kubelet|/run/containerd|/run/netns/cni-|/var/run/netns/cni-)' | sort -r | while read -r mount; do
    [ "$mount" = /var/lib/kubelet ] || umount "$mount" 2>/dev/null || umount -l "$mount" 2>/dev/null || :
done
find /sys/fs/cgroup -depth -type d -path '*kubepods*' -exec rmdir {} \; 2>/dev/null || :
"#;

/// On every node.
pub(super) fn task(removal: &Removal) -> Task {
    let mut task = Task::new("remove_pods", "Remove pods").timeout(Duration::from_mins(3));
    for host in removal.hosts() {
        if host.is_node() {
            task =
                task.on(&host.name, HostWork::new(vec![Box::new(Command::new("remove all pods", SCRIPT))]));
        }
    }
    task
}
