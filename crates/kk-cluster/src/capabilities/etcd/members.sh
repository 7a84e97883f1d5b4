# What the scripts that change the list of members share. ctl asks members on other hosts that are healthy.
# shellcheck disable=SC2154 # name and peer stand before this script
# Writes the file "members", a line each: id, status, name, peer URL, client URL, whether it is a learner. A member that
# was added and has not started yet has no client URL.
list() {
    ctl member list >members && [ -s members ]
}
field() { # NUMBER: of the line of this host's member; nothing when there is none
    KK_PEER=$peer KK_FIELD=$1 awk -F ', ' '$4 == ENVIRON["KK_PEER"] { print $ENVIRON["KK_FIELD"] }' members
}
own() { # the ids of all that have this host's name or address; a host that was replaced may have had another address
    KK_PEER=$peer KK_NAME=$name awk -F ', ' '$4 == ENVIRON["KK_PEER"] || $3 == ENVIRON["KK_NAME"] { print $1 }' members
}
# For 30 s: etcd changes its members only while those that it has are connected.
persistently() { # FUNCTION
    until=$(($(kk_uptime) + 30))
    until "$1" 2>persistently.err; do
        if [ "$(kk_uptime)" -ge $until ]; then
            cat persistently.err >&2
            return 1
        fi
        sleep 1
    done
}
