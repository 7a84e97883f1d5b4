# Rules of CNI's portmap plugin and the network namespaces of pods. A namespace in which a process lives is not a pod's.
remove_chains 'CNI-DN|CNI-HOSTPORT'
for space in $(ip netns list 2>/dev/null | grep -oE '^cni-[0-9a-f-]+'); do
    for _ in $(seq 20); do
        [ -n "$(ip netns pids "$space" 2>/dev/null)" ] || { ip netns delete "$space" || :; break; }
        sleep 0.1 2>/dev/null || sleep 1
    done
done
