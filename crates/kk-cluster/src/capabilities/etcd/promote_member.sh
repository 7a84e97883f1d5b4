# Succeeds if this host's member has a vote. A learner gets a vote as soon as it has copied the data.
# shellcheck disable=SC2154 # peer stands before this script
list
if [ -z "$(field 1)" ]; then
    echo "the cluster of etcd has no member at $peer" >&2
    exit 1
fi
[ "$(field 6)" = false ] || ctl member promote "$(field 1)"
