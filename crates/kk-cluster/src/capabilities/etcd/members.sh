# Functions that the scripts that change the member list share. ctl queries healthy members on other hosts.
# shellcheck disable=SC2154 # name and peer stand before this script
# Writes the file "members", with a line for each member: id, status, name, peer URL, client URL, whether it is a learner. A
# member that was added and has not started yet has no client URL.
list() {
    ctl member list >members && [ -s members ]
}
field() { # NUMBER: prints this field of the line of this host's member, if there is one
    KK_PEER=$peer KK_FIELD=$1 awk -F ', ' '$4 == ENVIRON["KK_PEER"] { print $ENVIRON["KK_FIELD"] }' members
}
own() { # prints the ids of all members with this host's name or address; a replaced host may have had another address
    KK_PEER=$peer KK_NAME=$name awk -F ', ' '$4 == ENVIRON["KK_PEER"] || $3 == ENVIRON["KK_NAME"] { print $1 }' members
}
# Retries for 30 s, because etcd changes its members only while the existing ones are connected.
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
