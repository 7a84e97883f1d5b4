# Rules, links, routes and files with flannel's own names, and those that its CNI configuration gives to the bridge plugin.
# shellcheck disable=SC2154 # routes stands before this script
remove_chains FLANNEL
if command -v nft >/dev/null; then
    nft delete table ip flannel-ipv4 2>/dev/null || :
    nft delete table ip6 flannel-ipv6 2>/dev/null || :
fi
for link in cni0 flannel.1 flannel-v6.1; do
    ! ip link show "$link" >/dev/null 2>&1 || ip link delete "$link"
done
[ -z "$routes" ] || ip route flush root "$routes"
rm -rf /var/lib/cni/flannel /var/lib/cni/networks/cbr0 /var/lib/cni/results/cbr0-*
rm -f /etc/cni/net.d/10-flannel.conflist /opt/cni/bin/flannel
empty /run/flannel
