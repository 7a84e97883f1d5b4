# Checks whether flannel's links on this node belong to the pod range that flannel recorded. Prints lines of a word, a tab and
# text:
#   subnet   the recorded IPv4 range      routes   the number of other nodes' ranges that are routed
#   agent    what flannel has to re-create
#   bridge   why pods are not connected to the bridge
#   range    which other range the bridge belongs to
#   peer     the link of another node, a tab, and ok or why it does not answer
# shellcheck disable=SC2154 # vxlan stands before this script, and the function ask
state=/run/flannel/subnet.env
say() { printf '%s\t%s\n' "$1" "$2"; }
value() { sed -n "s/^$1=//p" "$state" | tail -n 1; }
is_up() { [ $(($(cat "/sys/class/net/$1/flags") & 1)) = 1 ]; }

# flannel records the first address of the range, which belongs to the bridge. flannel's own link has the address before it.
link_address() { # ADDRESS/LENGTH
    of=${1%/*}
    echo "${of%.*}.$((${of##*.} - 1))"
}

agent_links() {
    if [ ! -e /sys/class/net/flannel.1 ]; then
        say agent 'the link flannel.1 is not there'
    elif ! is_up flannel.1; then
        say agent 'the link flannel.1 is down'
    elif ! ip -o -4 address show dev flannel.1 | grep -qF " $(link_address "$subnet")/"; then
        say agent "the link flannel.1 does not have the address $(link_address "$subnet")"
    elif [ -n "$subnet6" ] && { [ ! -e /sys/class/net/flannel-v6.1 ] || ! is_up flannel-v6.1; }; then
        say agent 'the link flannel-v6.1 is not there or down'
    fi
}

# The host's ends of pod links, from the results that the runtime keeps. Results of earlier pods have no link any more.
pod_links() {
    cat /var/lib/cni/results/cbr0-* 2>/dev/null | grep -o '"name" *: *"veth[0-9a-f]*"' | cut -d '"' -f 4 | sort -u |
        while read -r link; do
            [ ! -e "/sys/class/net/$link" ] || echo "$link"
        done
}

bridge() {
    pod_links >links.pods
    if [ ! -e /sys/class/net/cni0 ]; then
        [ ! -s links.pods ] || say bridge 'the link cni0 is not there'
        return
    fi
    ip -o address show dev cni0 scope global >links.bridge
    if ! grep -qF " $subnet " links.bridge; then
        others=$(awk '$3 == "inet" { print $4 }' links.bridge | paste -sd , -)
        if [ -n "$others" ]; then
            say range "the link cni0 has $others, and the pods of the node are in $subnet"
        else
            say bridge "the link cni0 does not have the address $subnet"
        fi
    elif [ -n "$subnet6" ] && ! grep -qF " $subnet6 " links.bridge; then
        say bridge "the link cni0 does not have the address $subnet6"
    elif ! is_up cni0; then
        say bridge 'the link cni0 is down'
    else
        while read -r link; do
            [ -e "/sys/class/net/$link/master" ] || echo "$link"
        done <links.pods >links.loose
        [ ! -s links.loose ] || say bridge "pods are not connected to the link cni0: $(paste -sd , links.loose)"
    fi
}

# The peer is the node with the next higher range, so that each node queries one node and is queried by one. Any answer, even a
# refusal, shows that packets arrive.
peer() {
    number() { awk -F '[ ./]' '{ printf "%010.0f %s\n", (($1 * 256 + $2) * 256 + $3) * 256 + $4, $0 }'; }
    own=$(echo "$subnet" | number | cut -d ' ' -f 1)
    number <links.routes | sort >links.sorted
    peer=$(KK_OWN=$own awk '$1 + 0 > ENVIRON["KK_OWN"] + 0 { print $4; found = 1; exit }
        NR == 1 { first = $4 } END { if (!found && NR) print first }' links.sorted)
    [ -n "$peer" ] || return 0
    until=$(($(cut -d . -f 1 /proc/uptime) + 6))
    until ask "http://$peer:10256/healthz" 2>links.peer </dev/null || grep -q refused links.peer; do
        if [ "$(cut -d . -f 1 /proc/uptime)" -ge "$until" ]; then
            say peer "$peer$(printf '\t')$(tail -n 1 links.peer)"
            return
        fi
        sleep 0.5 2>/dev/null || sleep 1
    done
    say peer "$peer$(printf '\t')ok"
}

if [ ! -e /etc/kubernetes/kubelet.conf ]; then
    :
elif [ ! -s "$state" ]; then
    # After a boot, flannel writes the file itself.
    [ "$(cut -d . -f 1 /proc/uptime)" -lt 300 ] || say agent "flannel has not written the range of this node to $state"
else
    subnet=$(value FLANNEL_SUBNET)
    subnet6=$(value FLANNEL_IPV6_SUBNET)
    say subnet "$subnet"
    [ -z "$vxlan" ] || agent_links
    bridge
    ip -4 route show root "$(value FLANNEL_NETWORK)" | awk '/ via /' >links.routes
    say routes "$(wc -l <links.routes)"
    [ -z "$vxlan" ] || peer
fi
