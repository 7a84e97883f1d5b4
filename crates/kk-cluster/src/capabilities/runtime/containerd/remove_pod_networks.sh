# Removes the rules of CNI's portmap plugin and the network namespaces of pods. A namespace with a running process does not belong
# to a pod.
remove_chains 'CNI-DN|CNI-HOSTPORT'
for space in $(ip netns list 2>/dev/null | grep -oE '^cni-[0-9a-f-]+'); do
    for _ in $(seq 20); do
        [ -n "$(ip netns pids "$space" 2>/dev/null)" ] || { ip netns delete "$space" || :; break; }
        sleep 0.1 2>/dev/null || sleep 1
    done
done
