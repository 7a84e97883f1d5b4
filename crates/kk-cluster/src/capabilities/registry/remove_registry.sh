# Stops the registry and takes back what its lines of the record name; what a cluster has on the host stays.
# shellcheck disable=SC2154 # only and data stand before this script
# A run that was killed may have removed the unit's file already: then systemctl knows none, and that is no failure.
for unit in registry-push.service registry.service; do
    systemctl disable -q "$unit" 2>/dev/null || :
    if ! systemctl stop "$unit" 2>stop.err && systemctl -q is-active "$unit"; then
        cat stop.err >&2
        kk_fail "$unit does not stop"
    fi
done
[ -z "$data" ] || rm -rf --one-file-system "$data/docker"
kk_disown_only "$only"
systemctl reset-failed registry-push.service registry.service 2>/dev/null || :
