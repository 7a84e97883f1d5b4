# Removes the member of a leaving host from the list. A member that is not in the list has already been removed.
remove() {
    list || return
    for id in $(own); do
        ctl member remove "$id" >/dev/null || return
    done
    list && [ -z "$(own)" ]
}
persistently remove
