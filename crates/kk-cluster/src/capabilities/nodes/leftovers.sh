# What other clusters have left on a host that is no node and that kk has not begun to change. Prints a kind, a tab and a name a line.
if [ ! -e /etc/kubernetes/kubelet.conf ] && [ ! -e /etc/kubekey/owned ]; then
    for path in /sys/class/net/*; do
        name=${path##*/}
        case $name in
            cni0 | flannel.* | flannel-v6.* | cali* | vxlan.calico | vxlan-v6.calico | cilium_* | kube-ipvs0 | kube-bridge | weave | nodelocaldns)
                printf 'link\t%s\n' "$name"
                ;;
        esac
    done
    # SOURCE POINT TYPE OPTIONS, the shortest path last: it is unmounted last.
    awk '$2 ~ "^/var/lib/kubelet/" { print "mount\t" $2 }' /proc/mounts | sort -r
    for path in /etc/kubernetes/manifests/*.yaml; do
        [ ! -e "$path" ] || printf 'manifest\t%s\n' "$path"
    done
    {
        ! command -v iptables-save >/dev/null || iptables-save 2>/dev/null
        ! command -v nft >/dev/null || nft list tables 2>/dev/null
    } | awk '
        # Other programs have chains of CNI, too: these are those of the plugin for ports of hosts.
        match($1, /^:(KUBE-|FLANNEL-|CNI-DN-|CNI-HOSTPORT-|CILIUM_|OLD_CILIUM_|cali-|cali:)/) {
            chains[substr($1, 2, RLENGTH - 1)]
        }
        $1 == "table" && $3 ~ /^(kube-proxy|flannel-ipv[46])$/ { print "table\t" $2 " " $3 }
        END { for (chain in chains) print "chains\t" chain }' | sort
fi
