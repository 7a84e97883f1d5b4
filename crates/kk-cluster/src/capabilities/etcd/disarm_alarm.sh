# Disarms the alarm NOSPACE if the databases of all $members are smaller than the quota of this host's member. etcdctl disarms all
# alarms at once, so another alarm prevents this.
# shellcheck disable=SC2034,SC2154 # endpoints and members stand before this script, and ctl, which asks $endpoints
disarm() {
    alarms=$(ctl alarm list) || return
    case $alarms in
    *alarm:CORRUPT*) kk_fail "the members of etcd hold different data: $alarms" || return ;;
    *alarm:NOSPACE*) ;;
    *) return 0 ;;
    esac
    quota=$(sed -n 's/^ETCD_QUOTA_BACKEND_BYTES=//p' "${KK_ROOT-}/etc/etcd.env" | tail -n 1)
    # etcd's default.
    [ "${quota:-0}" -gt 0 ] || quota=2147483648
    endpoints=$members
    sizes=$(ctl endpoint status -w json) || return
    largest=$(printf '%s' "$sizes" | grep -o '"dbSize":[0-9]*' | cut -d : -f 2 | sort -n | tail -n 1)
    if [ "$largest" -ge "$quota" ]; then
        kk_note "the database of a member of etcd still has $largest bytes, and its quota is $quota: it still refuses writes"
        return 0
    fi
    ctl alarm disarm >/dev/null
}
disarm
