# Replaces the data of this host's member by the snapshot. Its previous data is kept next to it, except for data of an earlier
# attempt.
# shellcheck disable=SC2154 # snapshot, name, peer, members, token, target and data stand before this script
aside=$data/restoring
rm -rf --one-file-system "$aside"
mkdir -p "$data"
# Clients and controllers have seen later revisions: without the bump, they would wait until etcd reaches these revisions again.
# The new revision grows with time, so that a restore after a restore also increases it.
bump=
case $(etcdutl snapshot restore --help 2>&1) in
*--bump-revision*)
    revision=$(etcdutl snapshot status "$snapshot" -w json | sed -nE 's/.*"revision": *([0-9]+).*/\1/p')
    more=$((target - revision))
    [ $more -gt 1000000000 ] || more=1000000000
    bump="--bump-revision $more --mark-compacted"
    ;;
esac
# shellcheck disable=SC2086 # two words, or none
etcdutl snapshot restore "$snapshot" --name "$name" --initial-advertise-peer-urls "$peer" --initial-cluster "$members" \
    --initial-cluster-token "$token" $bump --data-dir "$aside" >restore.log 2>&1 || {
    cat restore.log >&2
    exit 1
}
: >"$aside/member/.restored"
if [ -e "$data/member/.restored" ]; then
    rm -rf --one-file-system "$data/member"
elif [ -e "$data/member" ]; then
    mv "$data/member" "$data/member-before-$(date -u +%Y%m%dT%H%M%SZ)"
fi
mv "$aside/member" "$data/member"
rm -rf --one-file-system "$aside"
sync "$data"
