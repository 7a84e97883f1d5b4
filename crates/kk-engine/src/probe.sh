# Probes a host: one round trip, few processes, and no change. Generated lines set, before this text:
#   KK_N       nonce: a line "@NONCE NAME" begins a section, so that no content can imitate one
#   kk_files kk_units kk_tools kk_sysctls kk_ports kk_users kk_modules kk_disks   functions that call "$@" with the list
#   kk_questions  starts the further questions in the background; they leave the files reply.N, error.N and code.N
# The SHA-256 of large files is stored in /etc/kubekey/sums, lines of SUM SIZE MTIME CTIME INODE PATH, and a file is read again
# only if one of the other fields differs. Users cannot set a ctime.
export LC_ALL=C
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
KK_ROOT=${KK_ROOT-}
kk_sums=$KK_ROOT/etc/kubekey/sums
kk_tab=$(printf '\t')

kk_section() { printf '\n@%s %s\n' "$KK_N" "$1"; }
kk_show() { [ ! -r "$1" ] || cat "$1"; }
kk_first() { kk_line= && [ ! -r "$1" ] || IFS= read -r kk_line <"$1" || :; printf '%s\n' "$kk_line"; }

kk_section begun
date +%s%N

kk_questions

# Attributes first, then the checksums of files without a stored one; both with one process for all files.
kk_section files
kk_stat() { [ $# -eq 0 ] || stat -c "%F$kk_tab%a$kk_tab%U:%G$kk_tab%s$kk_tab%.9Y$kk_tab%.9Z$kk_tab%i$kk_tab%n" "$@" 2>/dev/null; }
kk_files kk_stat >stat.list || :
cat stat.list

kk_section sums
: >sums.old
[ ! -r "$kk_sums" ] || cat "$kk_sums" >sums.old
awk -F '\t' '
    FILENAME == "sums.old" { sum[$2 FS $3 FS $4 FS $5 FS $6] = $1; next }
    $1 !~ /^regular/ { next }
    { key = $4 FS $5 FS $6 FS $7 FS $8 }
    key in sum { print sum[key] "  " $8; next }
    { print $8 >"sums.need" }' sums.old stat.list
if [ -s sums.need ]; then
    tr '\n' '\0' <sums.need | xargs -0 sha256sum 2>/dev/null >sums.fresh || :
    cat sums.fresh
    # Reading a small file is faster than a lookup. A file written in the last second may be written again without a visible
    # change.
    if [ -d "$KK_ROOT/etc/kubekey" ]; then
        awk -F '\t' -v now="$(date +%s)" '
            FILENAME == "sums.fresh" { sum[substr($0, 67)] = substr($0, 1, 64); next }
            FILENAME == "stat.list" {
                if (($8 in sum) && $4 >= 262144 && $6 + 1 < now) {
                    fresh[$8] = 1
                    print sum[$8] FS $4 FS $5 FS $6 FS $7 FS $8
                    any = 1
                }
                next
            }
            !($6 in fresh)
            END { exit !any }' sums.fresh stat.list sums.old >sums.new &&
            (umask 077 && cat sums.new >"$kk_sums.$$" && mv -f "$kk_sums.$$" "$kk_sums")
    fi
fi

kk_section links
while IFS=$kk_tab read -r kk_kind _ _ _ _ _ _ kk_name; do
    case $kk_kind in symbolic*) printf '%s\t%s\n' "$kk_name" "$(readlink "$kk_name")" ;; esac
done <stat.list

kk_section units
kk_show_units() {
    [ $# -eq 0 ] || systemctl show -p LoadState -p ActiveState -p UnitFileState -p NeedDaemonReload \
        -p ActiveEnterTimestampMonotonic -p StateChangeTimestampMonotonic -- "$@" 2>/dev/null
}
kk_units kk_show_units || :

kk_section tools
kk_find_tools() {
    for kk_name; do
        printf '%s\t' "$kk_name"
        command -v "$kk_name" || echo
    done
}
kk_tools kk_find_tools

kk_section sysctls
# One process reads all settings, each with one read(2): if a shell reads a number byte by byte, the kernel returns only the first
# digit.
kk_read_sysctls() {
    kk_knobs=
    for kk_name; do
        kk_knob=/proc/sys/$kk_name
        [ -r "$kk_knob" ] || continue
        [ -w "$kk_knob" ] || printf 'ro\t%s\n' "$kk_name"
        kk_knobs="$kk_knobs $kk_knob"
    done
    # shellcheck disable=SC2086 # names of kernel settings have no spaces
    [ -z "$kk_knobs" ] || awk 'FNR == 1 { print "is\t" substr(FILENAME, length("/proc/sys/") + 1) "\t" $0 }' $kk_knobs
}
kk_sysctls kk_read_sysctls

kk_section ports
kk_show_ports() {
    [ $# -eq 0 ] || ss -Hltnp 2>/dev/null || cat /proc/net/tcp /proc/net/tcp6 2>/dev/null
}
kk_ports kk_show_ports || :

kk_section users
# Lists users whose group exists: a useradd that was killed may have left a user without a group.
kk_show_users() {
    for kk_name; do
        ! id -gn "$kk_name" >/dev/null 2>&1 || echo "$kk_name"
    done
}
kk_users kk_show_users || :

kk_section disks
# One df per path: a file system that df cannot measure must not hide the others.
kk_show_disks() {
    for kk_wanted; do
        kk_name=$kk_wanted
        while [ ! -e "$kk_name" ]; do
            kk_name=${kk_name%/*}
            kk_name=${kk_name:-/}
        done
        printf 'of\t%s\n' "$kk_wanted"
        df -Pk "$kk_name" 2>/dev/null || :
    done
}
kk_disks kk_show_disks || :

# A module counts as present if it is loaded, built in, visible by its effect, or loadable.
kk_section modules
kk_release=$(uname -r)
kk_show_modules() {
    kk_want=$(printf '|%s' "$@")
    kk_want=${kk_want#|}
    [ ! -r /proc/modules ] || sed 's/ .*//; s/^/loaded /' /proc/modules
    for kk_name; do [ ! -d "/sys/module/$kk_name" ] || echo "loaded $kk_name"; done
    kk_lib=/lib/modules/$kk_release
    [ ! -r "$kk_lib/modules.builtin" ] || sed -nE "s,^.*/($kk_want)\.ko.*,loaded \1,p" "$kk_lib/modules.builtin"
    [ ! -r "$kk_lib/modules.dep" ] || sed -nE "s,^[^:]*/($kk_want)\.ko[^:]*:.*,loadable \1,p" "$kk_lib/modules.dep"
    if [ -r /proc/config.gz ]; then gzip -dc /proc/config.gz; else kk_show "/boot/config-$kk_release"; fi |
        sed -nE 's/^CONFIG_(OVERLAY_FS|BRIDGE_NETFILTER|IP_VS|IP_VS_RR|IP_VS_WRR|IP_VS_SH|NF_TABLES|VXLAN|NET_IPIP|NF_CONNTRACK|VETH)=y/config \1/p'
    [ ! -d /proc/sys/net/bridge ] || echo loaded br_netfilter
    [ ! -e /proc/net/ip_vs ] || echo loaded ip_vs
    [ ! -d /proc/sys/net/netfilter ] || echo loaded nf_conntrack
    ! grep -qw overlay /proc/filesystems || echo loaded overlay
}
kk_modules kk_show_modules

kk_section cgroups
[ ! -e /sys/fs/cgroup/cgroup.controllers ] || { printf 'v2 ' && cat /sys/fs/cgroup/cgroup.controllers; }
[ ! -r /proc/cgroups ] || awk '$4 == 1 { print "v1", $1 }' /proc/cgroups
# With v1, systemd manages a controller if it has created its slices below its own cgroup in it.
while IFS=: read -r _ kk_name kk_path; do
    kk_path=${kk_path%/init.scope}
    case $kk_name in memory | pids | cpu | cpu,cpuacct | cpuacct,cpu) ;; *) continue ;; esac
    [ ! -d "/sys/fs/cgroup/$kk_name${kk_path%/}/system.slice" ] || echo "managed $kk_name"
done </proc/1/cgroup
[ ! -d /run/systemd/system ] || echo systemd

kk_section kernel
uname -n
echo "$kk_release"
uname -m
nproc 2>/dev/null || getconf _NPROCESSORS_ONLN
kk_first /proc/meminfo
# systemd's uptime does not advance while a machine is suspended. /proc/uptime does; it is the fallback for kernels without the
# list. The clock is read after the uptime, so that a file never seems newer than it is.
awk '/^now at/ { print $3 "n"; exit }' /proc/timer_list 2>/dev/null | grep . || kk_first /proc/uptime
date +%s%N
grep CapBnd /proc/self/status || echo

kk_section swaps
kk_show /proc/swaps

kk_section selinux
if [ -e /sys/fs/selinux/enforce ]; then kk_first /sys/fs/selinux/enforce; elif [ -e /etc/selinux/config ]; then echo disabled; fi

kk_section release
if [ -r /etc/os-release ]; then cat /etc/os-release; else kk_show /usr/lib/os-release; fi

kk_section resolv
kk_show /etc/resolv.conf

kk_section addresses
ip -o addr show 2>/dev/null || hostname -I 2>/dev/null || :

kk_section owned
kk_show "$KK_ROOT/etc/kubekey/owned"

wait
for kk_name in reply.*; do
    [ -e "$kk_name" ] || continue
    kk_number=${kk_name#reply.}
    read -r kk_code <"code.$kk_number"
    if [ "$kk_code" != 0 ]; then
        kk_section "error $kk_number"
        tail -n 1 "error.$kk_number"
    fi
    kk_section "reply $kk_number $kk_code"
    cat "$kk_name"
done

kk_section ended
date +%s%N
