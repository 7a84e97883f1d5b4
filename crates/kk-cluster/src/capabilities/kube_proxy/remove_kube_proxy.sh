# Removes only chains, tables, sets and links with names of Kubernetes, including the kubelet's chains.
remove_chains KUBE
if command -v nft >/dev/null; then
    for family in ip ip6; do nft delete table $family kube-proxy 2>/dev/null || :; done
fi
if command -v ipset >/dev/null; then
    for set in $(ipset list -n 2>/dev/null | grep -E '^KUBE-'); do ipset destroy "$set" 2>/dev/null || :; done
fi
# Removes virtual servers at the addresses of kube-proxy's link, and at ports of the range for nodes.
if [ -r /proc/net/ip_vs ] && ip -o address show dev kube-ipvs0 >addresses 2>/dev/null; then
    if command -v ipvsadm >/dev/null; then
        awk '{ sub("/.*", "", $4); print $4 }' addresses >own
        ipvsadm -S -n | awk 'NR == FNR { own[$1]; next }
            $1 == "-A" { address = $3; sub(":[0-9]+$", "", address); gsub("[][]", "", address); port = $3; sub(".*:", "", port)
                if (address in own || (port >= 30000 && port <= 32767)) print "-D", $2, $3 }' own - >servers
        while read -r server; do
            # shellcheck disable=SC2086 # three words
            ipvsadm $server 2>/dev/null || :
        done <servers
    elif tail -n +4 /proc/net/ip_vs | grep -q .; then
        kk_note "virtual servers of IPVS stay until the next boot, because ipvsadm is not installed"
    fi
fi
! ip link show kube-ipvs0 >/dev/null 2>&1 || ip link delete kube-ipvs0
