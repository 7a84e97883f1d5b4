# Removes the member of a host that leaves from the list. One that is not in it has left before.
# shellcheck disable=SC2154 # peer stands before this script
remove() {
    list && if [ -n "$(field 1)" ]; then
        ctl member remove "$(field 1)" >/dev/null && list && [ -z "$(field 1)" ]
    fi
}
persistently remove
