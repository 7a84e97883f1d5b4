# Prints the network interface that has $address, whether $vip is in its network, and whether another host has $vip.
# shellcheck disable=SC2154 # address and vip stand before this script
echo "interface: $(ip -o -4 addr show to "$address" 2>/dev/null | awk '{ print $2; exit }')"
case $(ip -o -4 route get "$vip" 2>/dev/null) in *' via '* | '') echo 'route: via' ;; *) echo 'route: direct' ;; esac
# Where kube-vip is installed, another control plane may have the address.
if [ -e /etc/kubernetes/manifests/kube-vip.yaml ] || [ -n "$(ip -o -4 addr show to "$vip" 2>/dev/null)" ]; then
    echo 'state: own'
else
    # The kernel remembers the previous owner of a released address for minutes, so only an answer from now on counts.
    ip neigh flush to "$vip" >/dev/null 2>&1 || :
    # A connection makes the kernel look for the address, whether it succeeds or not. A proxy would connect in place of this host.
    (
        unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY
        curl -ks --noproxy '*' -m 1 -o /dev/null "https://$vip:6443/" || wget -q -t 1 -T 1 -O /dev/null "http://$vip:6443/" || ping -c 1 -W 1 "$vip"
    ) >/dev/null 2>&1 || :
    case $(ip -o neigh show to "$vip" 2>/dev/null) in *' lladdr '*REACHABLE*) echo 'state: taken' ;; *) echo 'state: free' ;; esac
fi
