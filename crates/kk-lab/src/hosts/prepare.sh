# Runs as the first thing in a host of the lab: control groups that containers may write, and kernel parameters
# that would reach the whole machine read-only.
for d in /sys/fs/cgroup/*; do
  if mountpoint -q "$d"; then mount -o remount,rw,bind "$d"; fi
done
for d in kernel vm fs/pipe-max-size fs/aio-max-nr; do
  mount --bind /proc/sys/$d /proc/sys/$d
  mount -o remount,ro,bind /proc/sys/$d
done
# A kubelet ends when these differ from what it wants and cannot be set. The machine keeps its own values: the host
# sees files that hold the wanted ones.
mkdir -p /run/lab-sysctl
for pair in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
  kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
  path=${pair%=*} file=/run/lab-sysctl/$(basename "${pair%=*}")
  echo "${pair#*=}" > "$file"
  mount --bind "$file" "/proc/sys/$path"
  mount -o remount,ro,bind "/proc/sys/$path"
done
# These a cluster sets, too. They are the machine's, so each host writes to files of its own: what one lab sets or restores
# another lab would take for damage.
for name in max_user_watches max_user_instances; do
  path=/proc/sys/fs/inotify/$name file=/run/lab-sysctl/$name
  cat "$path" > "$file"
  mount --bind "$file" "$path"
done
mount --make-rshared /
