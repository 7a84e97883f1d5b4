# Runs as the first thing in a host of the lab: control groups that containers may write, and kernel parameters
# that would reach the whole machine read-only.
for d in /sys/fs/cgroup/*; do
  if mountpoint -q "$d"; then mount -o remount,rw,bind "$d"; fi
done
for d in kernel vm fs/pipe-max-size fs/aio-max-nr; do
  mount --bind /proc/sys/$d /proc/sys/$d
  mount -o remount,ro,bind /proc/sys/$d
done
mount --make-rshared /
