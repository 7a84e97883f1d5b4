# Prints everything about this host that an installer could change, one "kind key<TAB>value" a line.
export LC_ALL=C
systemctl is-system-running --wait >/dev/null 2>&1 || true
tab=$(printf '\t')

# Paths with their kind, mode, owner and link target; contents of regular files by their checksum. Names on these hosts contain no
# line breaks. The data directories are file systems of their own: paths are enough there.
list() {
  find "$@" -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /var/tmp -o -path /var/log \) -prune \
    -o -printf 'file %p\t%y %m %u:%g %l\n'
}
list / /var/lib/containerd /var/lib/kubelet /var/lib/etcd 2>/dev/null || true

# Checksums of files, kept for the next call: only new and changed files are read again.
sums=/run/e2e-sums
touch "$sums"
find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /var/tmp -o -path /var/log \) -prune \
  -o -type f -printf '%i %s %T@ %C@\t%p\n' >"$sums.now"
: >"$sums.todo"
awk -F '\t' -v todo="$sums.todo" '
  FILENAME == ARGV[1] { known[$1 FS $2] = $3; next }
  $0 in known { print $0 FS known[$0]; next }
  { print >todo }' "$sums" "$sums.now" >"$sums.new"
# A file may go at any moment.
cut -f 2 "$sums.todo" | tr '\n' '\0' | xargs -0 -r sha256sum --zero 2>/dev/null | tr '\0' '\n' >"$sums.read" || true
awk -F '\t' '
  FILENAME == ARGV[1] { sum[substr($0, 67)] = substr($0, 1, 64); next }
  $2 in sum { print $0 FS sum[$2] }' "$sums.read" "$sums.todo" >>"$sums.new"
mv "$sums.new" "$sums"
rm "$sums.todo" "$sums.read" "$sums.now"
awk -F '\t' '{ print "content " $2 FS $3 }' "$sums"

getent passwd | sed "s/^\([^:]*\):/user \1$tab/"
getent group | sed "s/^\([^:]*\):/group \1$tab/"
systemctl list-unit-files --no-legend --no-pager | awk '{print "unit-file " $1 "\t" $2}'
systemctl list-units --all --plain --no-legend --no-pager --type=service,socket,timer,path,mount,swap,target |
  awk '{print "unit " $1 "\t" $2 " " $3}'
sysctl -a 2>/dev/null | sed "s/^\([^ ]*\) = \(.*\)/sysctl \1$tab\2/"
hostname | sed "s/^/hostname$tab/"
# `host0@if4`: 4 is the number of the other end outside of this host, and another one after each boot.
ip -o link | awk '{sub(/@if[0-9]+:$/, ":", $2); print "link " $2 "\t" $3}'
ip -o addr | awk '{print "address " $2 " " $4 "\t"}'
ip route show table all | sed "s/^/route /; s/\$/$tab/"
ip rule | sed "s/^/rule /; s/\$/$tab/"
for family in iptables ip6tables; do
  # Any query may create the built-in chains; they matter only when they contain a rule or another policy.
  $family-save 2>/dev/null | grep -v -e '^#' -e '^\*' -e '^COMMIT' -e '^:[A-Z]* ACCEPT' |
    sed "s/ \[[0-9]*:[0-9]*\]\$//; s/^/$family /; s/\$/$tab/" || true
done
awk '{print "mount " $5 "\t"}' /proc/self/mountinfo
find /sys/fs/cgroup -type d \( -name 'kubepods*' -o -name 'k8s.io' -o -name '*cri-containerd*' \) 2>/dev/null |
  sed "s/^/cgroup /; s/\$/$tab/" || true
ps -eo comm= | sort -u | sed "s/^/process /; s/\$/$tab/"
