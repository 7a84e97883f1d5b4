# Succeeds when the member at $endpoints has a leader and commits: it serves a read on which the members agree, and the list of
# alarms is a proposal. `etcdctl endpoint health` also fails with the alarm NOSPACE, when members still serve reads, snapshots
# and defragmentations.
healthy() {
    ctl get --consistency=l --keys-only kk-health >/dev/null || return
    alarms=$(ctl alarm list) || return
    case $alarms in
    *alarm:CORRUPT*)
        echo "the members of etcd hold different data: $alarms" >&2
        return 1
        ;;
    esac
}
