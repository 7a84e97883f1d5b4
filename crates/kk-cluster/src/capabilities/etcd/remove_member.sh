# Removes the member of a host that leaves from the list. One that is not in it has left before.
remove() {
    list || return
    for id in $(own); do
        ctl member remove "$id" >/dev/null || return
    done
    list && [ -z "$(own)" ]
}
persistently remove
