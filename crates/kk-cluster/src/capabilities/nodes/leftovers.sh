# Prints the leftovers of other clusters, if the host is not a node and kk has not begun to change it. Each line is a kind, a tab
# and a name.
if [ ! -e /etc/kubernetes/kubelet.conf ] && [ ! -e /etc/kubekey/owned ]; then
    for path in /sys/class/net/*; do
        name=${path##*/}
        case $name in
            cni0 | flannel.* | flannel-v6.* | cali* | vxlan.calico | vxlan-v6.calico | cilium_* | kube-ipvs0 | kube-bridge | weave | nodelocaldns)
                printf 'link\t%s\n' "$name"
                ;;
        esac
    done
    # Fields: SOURCE POINT TYPE OPTIONS. The shortest path is last, because it has to be unmounted last.
    awk '$2 ~ "^/var/lib/kubelet/" { print "mount\t" $2 }' /proc/mounts | sort -r
    for path in /etc/kubernetes/manifests/*.yaml; do
        [ ! -e "$path" ] || printf 'manifest\t%s\n' "$path"
    done
    {
        ! command -v iptables-save >/dev/null || iptables-save 2>/dev/null
        ! command -v nft >/dev/null || nft list tables 2>/dev/null
    } | awk '
        # Other programs use chains of CNI, too: these belong to the plugin for host ports.
        match($1, /^:(KUBE-|FLANNEL-|CNI-DN-|CNI-HOSTPORT-|CILIUM_|OLD_CILIUM_|cali-|cali:)/) {
            chains[substr($1, 2, RLENGTH - 1)]
        }
        $1 == "table" && $3 ~ /^(kube-proxy|flannel-ipv[46])$/ { print "table\t" $2 " " $3 }
        END { for (chain in chains) print "chains\t" chain }' | sort
fi
