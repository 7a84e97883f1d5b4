# Stops the registry and takes back what its lines of the record name; what a cluster has on the host stays.
# shellcheck disable=SC2154 # only and data stand before this script
# A run that was killed may have removed the unit's file already: then systemctl knows none, and that is no failure.
systemctl disable -q registry.service 2>/dev/null || :
if ! systemctl stop registry.service 2>stop.err && systemctl -q is-active registry.service; then
    cat stop.err >&2
    kk_fail "registry.service does not stop"
fi
[ -z "$data" ] || rm -rf --one-file-system "$data/docker"
kk_disown_only "$only"
systemctl reset-failed registry.service 2>/dev/null || :
