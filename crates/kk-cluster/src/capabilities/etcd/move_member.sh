# Sets the new peer address of the member with this name. It keeps its identity and its data.
# shellcheck disable=SC2154 # name and peer stand before this script
give_address() {
    list || return
    [ -z "$(field 1)" ] || return 0
    id=$(KK_NAME=$name awk -F ', ' '$3 == ENVIRON["KK_NAME"] { print $1 }' members)
    if [ -z "$id" ]; then
        echo "the cluster of etcd has no member called $name" >&2
        return 1
    fi
    ctl member update "$id" --peer-urls "$peer" >/dev/null
}
persistently give_address
