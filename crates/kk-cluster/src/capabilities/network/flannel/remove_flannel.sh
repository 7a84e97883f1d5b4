# Removes rules, links, routes and files with flannel's own names, and those that its CNI configuration defines for the bridge
# plugin. The routes, which host-gw creates, are selected by the network that flannel used: the cluster file may now specify
# another range, which may be the network of the host itself.
remove_chains FLANNEL
if command -v nft >/dev/null; then
    nft delete table ip flannel-ipv4 2>/dev/null || :
    nft delete table ip6 flannel-ipv6 2>/dev/null || :
fi
for link in cni0 flannel.1 flannel-v6.1; do
    ! ip link show "$link" >/dev/null 2>&1 || ip link delete "$link"
done
routes=$(sed -n 's/^FLANNEL_NETWORK=//p' /run/flannel/subnet.env 2>/dev/null | head -n 1)
[ -z "$routes" ] || ip route flush root "$routes" || kk_note "routes to $routes may be left"
rm -rf /var/lib/cni/flannel /var/lib/cni/networks/cbr0 /var/lib/cni/results/cbr0-*
rm -f /etc/cni/net.d/10-flannel.conflist /opt/cni/bin/flannel
empty /run/flannel
