# Only chains, tables, sets and links that carry Kubernetes' own names; the kubelet's chains are among them.
remove_chains KUBE
if command -v nft >/dev/null; then
    for family in ip ip6; do nft delete table $family kube-proxy 2>/dev/null || :; done
fi
if command -v ipset >/dev/null; then
    for set in $(ipset list -n 2>/dev/null | grep -E '^KUBE-'); do ipset destroy "$set" 2>/dev/null || :; done
fi
! ip link show kube-ipvs0 >/dev/null 2>&1 || ip link delete kube-ipvs0
