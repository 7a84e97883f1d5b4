# Defragments the database of this host's member. A full one ($full) first drops the history of its objects: else most of it stays
# in use.
# shellcheck disable=SC2154 # full stands before this script, and ctl, which asks the member of this host
compact() {
    revision=$(ctl endpoint status -w json | grep -o '"revision":[0-9]*' | cut -d : -f 2) || return
    # Another member has come to it first.
    said=$(ctl compact --physical "$revision" 2>&1) || case $said in
    *"has been compacted"*) ;;
    *) kk_fail "$said" ;;
    esac
}
[ -z "$full" ] || compact
ctl defrag
