# Stops the registry and takes back what its lines of the record name; what a cluster has on the host stays.
# shellcheck disable=SC2154 # only and data stand before this script
systemctl disable -q --now registry.service
[ -z "$data" ] || rm -rf --one-file-system "$data/docker"
kk_disown_only "$only"
systemctl reset-failed registry.service 2>/dev/null || :
