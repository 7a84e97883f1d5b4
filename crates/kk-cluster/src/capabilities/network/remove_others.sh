# Removes from a node the traces of network plugins that addons or users installed. Each name belongs to only one plugin: Calico,
# Cilium, kube-router or Multus. Traces of other plugins stay.
# shellcheck disable=SC2154 # pods, the range of pods, stands before this script
kube_router=
if [ -e /sys/class/net/kube-bridge ] || [ -e /etc/cni/net.d/10-kuberouter.conflist ]; then kube_router=yes; fi

remove_chains 'KUBE-ROUTER|KUBE-POD-FW|KUBE-NWPLCY|cali'
remove_rules '^(:|-A )(OLD_)?CILIUM_| -[jg] (OLD_)?CILIUM_'
# Calico also puts rules into the chains of the kernel, with a comment.
remove_rules ' --comment "?cali:'
if command -v nft >/dev/null; then
    for family in ip ip6; do nft delete table $family calico 2>/dev/null || :; done
fi
# kube-router also puts rules into the chains of the kernel.
remove_rules ' --match-set (inet6:)?kube-router-| -[io] kube-bridge |allow outbound node port traffic on node interface with which node ip is associated'

# The kernel releases a set a moment after the last rule that names it.
if command -v ipset >/dev/null; then
    tries=20
    while ipset list -n 2>/dev/null | grep -E '^(inet6:)?(KUBE-(SRC|DST)-|kube-router-)|^cali(40|60)|^cilium_node_set_' >sets; do
        while read -r set; do ipset destroy "$set" 2>/dev/null || :; done <sets
        [ $((tries -= 1)) -gt 0 ] || { kk_note "sets of ipset stay until the next boot: $(paste -sd ' ' sets)"; break; }
        sleep 0.1 2>/dev/null || sleep 1
    done
fi

if [ -n "$kube_router" ]; then
    # Routes from its BGP server, and its tables: for pods behind tunnels, direct server return and external addresses.
    ip route flush root "$pods" proto 17 2>/dev/null || :
    for table in 77 78 79; do
        for family in -4 -6; do
            while ip $family rule delete lookup $table 2>/dev/null; do :; done
            ip $family route flush table $table 2>/dev/null || :
        done
    done
fi
if [ -e /etc/cni/net.d/10-calico.conflist ] || [ -e /var/lib/calico ]; then
    for protocol in bird 80; do ip route flush root "$pods" proto $protocol 2>/dev/null || :; done
fi

# Cilium attaches its programs with tc, or keeps them attached with a pin.
if command -v tc >/dev/null; then
    for link in /sys/class/net/*; do
        link=${link##*/}
        for way in ingress egress; do
            tc filter show dev "$link" $way 2>/dev/null | awk '/ cil_/ { for (i = 1; i < NF; i++) if ($i == "pref") print $(i + 1) }' |
                sort -u | while read -r pref; do tc filter delete dev "$link" $way pref "$pref" 2>/dev/null || :; done
        done
    done
fi
rm -rf /sys/fs/bpf/cilium /sys/fs/bpf/tc/globals/cilium_*
rmdir /sys/fs/bpf/tc/globals /sys/fs/bpf/tc 2>/dev/null || :
! grep -qs ' /run/cilium/cgroupv2 ' /proc/self/mountinfo || umount /run/cilium/cgroupv2 || umount -l /run/cilium/cgroupv2 || :
# Cilium's proxy needs a rule before the rule of local addresses. Cilium therefore moves that rule from 0 to 100.
for family in -4 -6; do
    for table in 2004 2005; do
        while ip $family rule delete lookup $table 2>/dev/null; do :; done
        ip $family route flush table $table 2>/dev/null || :
    done
    if ip $family rule show 2>/dev/null | grep -q '^100:.*lookup local'; then
        ip $family rule show | grep -q '^0:.*lookup local' || ip $family rule add pref 0 lookup local
        ip $family rule delete pref 100 lookup local
    fi
done

# Removing one end of a veth pair removes the other end, too.
ls /sys/class/net >links
grep -E '^(kube-bridge|kube-dummy-if|kube-tunnel-if|tun-[0-9a-f]{11}|cali[0-9a-f]{11}|vxlan(-v6)?[.]calico|wireguard[.]cali|wg-v6[.]cali|cilium_(host|net|vxlan|geneve|ipip4|ipip6|tunl|ip6tnl|wg0|health)|lxc([0-9a-f]{12}|_health))$' links |
    while read -r link; do ! ip link show "$link" >/dev/null 2>&1 || ip link delete "$link" 2>/dev/null || :; done
# The kernel does not remove the link that its ipip module creates.
if [ -e /var/lib/calico ] && [ -e /sys/class/net/tunl0 ]; then
    ip address flush dev tunl0 && ip link set tunl0 down
fi

# Cilium renames the CNI files of others. Files of known plugins are removed; all others belong to the user. A name that is
# in use again keeps its current file.
for backup in /etc/cni/net.d/*.cilium_bak; do
    [ -e "$backup" ] || continue
    file=${backup%.cilium_bak}
    case ${file##*/} in
    10-flannel.conflist | 10-calico.conflist | 10-kuberouter.conflist | 05-cilium.conflist | 00-multus.conf) rm -f "$backup" ;;
    *) [ -e "$file" ] || mv "$backup" "$file" ;;
    esac
done
rm -f /etc/cni/net.d/10-kuberouter.conflist /etc/cni/net.d/10-calico.conflist /etc/cni/net.d/calico-kubeconfig
rm -f /etc/cni/net.d/05-cilium.conflist /opt/cni/bin/calico /opt/cni/bin/calico-ipam /opt/cni/bin/cilium-cni
rm -f /etc/cni/net.d/00-multus.conf /opt/cni/bin/multus-shim
rm -rf /etc/cni/net.d/multus.d /etc/cni/multus /run/multus /run/k8s.cni.cncf.io
rm -f /etc/sysctl.d/99-zzz-override_cilium.conf
! grep -qs ' /run/calico/cgroup ' /proc/self/mountinfo || umount /run/calico/cgroup || umount -l /run/calico/cgroup || :
rm -rf /var/lib/calico /var/log/calico /run/calico /var/lib/kube-router
empty /run/cilium
! [ -d /run/cilium ] || rmdir /run/cilium
