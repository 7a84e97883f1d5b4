# Defragments the database of this host's member. If the database is full ($full), the script first removes the history of
# objects; otherwise, most of the database stays in use.
# shellcheck disable=SC2154 # full stands before this script, and ctl, which asks the member of this host
compact() {
    revision=$(ctl endpoint status -w json | grep -o '"revision":[0-9]*' | cut -d : -f 2) || return
    # Another member has already compacted it.
    said=$(ctl compact --physical "$revision" 2>&1) || case $said in
    *"has been compacted"*) ;;
    *) kk_fail "$said" ;;
    esac
}
[ -z "$full" ] || compact
ctl defrag
