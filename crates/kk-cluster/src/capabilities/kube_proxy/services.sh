# Whether the Services of the API and of the cluster's DNS answer on this node. Prints a line for each: its name, a tab, and ok or
# the reason. A node that has just started, or that is busy, gets 8 s. Each query has its own connection, because a Service
# selects any of its pods: the DNS Service has two, and a pod on another node must answer, too.
# shellcheck disable=SC2154 # api and dns stand before this script, and the function ask
all_answer() { # TIMES URL
    times=$1
    while [ "$times" -gt 0 ]; do
        ask "$2" </dev/null || return
        times=$((times - 1))
    done
}
look() { # NAME TIMES URL
    until=$(($(cut -d . -f 1 /proc/uptime) + 8))
    until all_answer "$2" "$3" 2>"services.$1"; do
        if [ "$(cut -d . -f 1 /proc/uptime)" -ge "$until" ]; then
            printf '%s\t%s\n' "$1" "$(tail -n 1 "services.$1")"
            return
        fi
        sleep 0.5 2>/dev/null || sleep 1
    done
    printf '%s\tok\n' "$1"
}
if [ -e /etc/kubernetes/kubelet.conf ]; then
    look api 1 "$api" >services.api.said &
    look dns 8 "$dns"
    wait
    cat services.api.said
fi
