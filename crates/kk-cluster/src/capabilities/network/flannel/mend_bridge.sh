# Re-creates the bridge of pods with the address that flannel assigned to this node, and connects the running pods to it. The
# bridge gets its previous hardware address, because pods know their gateway by it.
value() { sed -n "s/^$1=//p" /run/flannel/subnet.env | tail -n 1; }
results() { cat /var/lib/cni/results/cbr0-* 2>/dev/null; }
if [ ! -e /sys/class/net/cni0 ]; then
    mac=$(results | grep -o '{[^{}]*"cni0"[^{}]*}' | grep -o '"mac" *: *"[0-9a-f:]*"' | cut -d '"' -f 4 | sort | uniq -c | sort -rn |
        awk 'NR == 1 { print $2 }')
    # shellcheck disable=SC2086 # two words, or none
    kk_do ip link add cni0 ${mac:+address $mac} type bridge
    mtu=$(value FLANNEL_MTU)
    [ -z "$mtu" ] || ip link set cni0 mtu "$mtu"
fi
for address in $(value FLANNEL_SUBNET) $(value FLANNEL_IPV6_SUBNET); do
    ip -o address show dev cni0 | grep -qF " $address " || kk_do ip address add "$address" dev cni0
done
kk_do ip link set cni0 up
results | grep -o '"name" *: *"veth[0-9a-f]*"' | cut -d '"' -f 4 | sort -u | while read -r link; do
    [ -e "/sys/class/net/$link" ] && [ ! -e "/sys/class/net/$link/master" ] || continue
    kk_do ip link set "$link" master cni0 up
    # Hairpin mode lets a pod reach itself through its Service.
    echo 1 >"/sys/class/net/$link/brport/hairpin_mode" || :
done
