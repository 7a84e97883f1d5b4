# Adds this host's member to the list as a learner, which has no vote until it has copied the data, and configures etcd to start
# with the current members.
# shellcheck disable=SC2154 # data, name, peer and keep stand before this script
systemctl stop etcd.service 2>/dev/null || :
if [ -n "$keep" ] && [ -e "$data/member" ]; then
    mv "$data/member" "$data/member-before-$(date -u +%Y%m%dT%H%M%SZ)"
else
    rm -rf --one-file-system "$data/member"
fi
add() {
    list || return
    if [ -n "$(field 5)" ]; then
        echo "the cluster of etcd still has the member of before at $peer" >&2
        return 1
    fi
    [ -n "$(field 1)" ] || { ctl member add "$name" --learner --peer-urls "$peer" >/dev/null && list; }
}
persistently add
{
    cat joined.env
    KK_PEER=$peer KK_NAME=$name awk -F ', ' '
        { name = $4 == ENVIRON["KK_PEER"] ? ENVIRON["KK_NAME"] : $3 == "" ? $1 : $3
          all = all (all == "" ? "" : ",") name "=" $4 }
        END { print "ETCD_INITIAL_CLUSTER=" all }' members
} >joining.env
kk_put joining.env /etc/etcd-joined.env 644 root:root
