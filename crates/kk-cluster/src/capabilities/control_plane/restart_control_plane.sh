# With $manifests, the words of a command, writes the manifests of the static pods; those named in $again start again in
# any case. Then waits until what runs from them is ready. Parts that stay are looked at, too: a run before this one may
# have been killed while it waited.
# shellcheck disable=SC2154 # server, node, again and manifests stand before this script
parts='kube-apiserver kube-controller-manager kube-scheduler'
directory=/etc/kubernetes/manifests
containers() { # part, state (empty: all)
    crictl ps -a -q ${2:+--state "$2"} --name "^$1\$"
}
sum() { # part
    sha256sum <"$directory/$1.yaml"
}
is_again() { # part
    case " $again " in *" $1 "*) ;; *) return 1 ;; esac
}
# An API server that is asked to end takes no new requests, and waits for its watchers: for longer than the 30 s after which
# the kubelet ends it. Others are asked meanwhile, and the watchers come back by themselves. The longer nobody answers, the
# longer they wait before they try again.
grace=3
pod() { # container
    crictl inspect -o go-template --template '{{.info.sandboxID}}' "$1" 2>/dev/null
}
for part in $parts; do
    sum "$part" >"$part.sum" || :
    containers "$part" '' >"$part.before"
    while read -r old; do pod "$old" || :; done <"$part.before" >"$part.pods"
done
# shellcheck disable=SC2086 # it is a list of words
[ -z "$manifests" ] || $manifests
# One that keeps ending is not started for up to 5 minutes. A new kubelet knows nothing of that.
waits=
for part in $again; do
    now=$(containers "$part" running | head -n 1)
    if [ -n "$now" ]; then
        crictl --timeout 60s stop --timeout "$grace" "$now" >/dev/null
    else
        waits=yes
    fi
done
[ -z "$waits" ] || systemctl restart kubelet.service
is_changed() { # part
    [ "$(sum "$1")" != "$(cat "$1.sum")" ]
}
# Once it does not say any more that it is ready, the kubelet has asked it to end.
hasten_api_server() {
    is_changed kube-apiserver || return 0
    old=$(containers kube-apiserver running | grep -xF -f kube-apiserver.before | head -n 1)
    if [ -n "$old" ] && ! answers; then
        crictl --timeout 60s stop --timeout "$grace" "$old" >/dev/null 2>&1 || :
    fi
}
answers() {
    kubectl --server "$server" --request-timeout 5s get --raw /readyz >/dev/null 2>&1
}
# A container that runs, started from the manifest of now, and that the kubelet's probes find well. An API server answers
# before the kubelet has reported its new pod.
ready() { # part
    now=$(containers "$1" running | head -n 1)
    [ -n "$now" ] || return 1
    ! is_again "$1" || ! grep -qxF "$now" "$1.before" || return 1
    # Another manifest is another pod. The container of the old one may have started once more.
    ! is_changed "$1" || { pod "$now" >of && [ -s of ] && ! grep -qxF -f "$1.pods" of; } || return 1
    [ "$1" != kube-apiserver ] || answers || return 1
    # The identifier in the status has the runtime's name before it: containerd://…
    kubectl --server "$server" --request-timeout 5s -n kube-system get pod "$1-$node" \
        -o jsonpath='{range .status.containerStatuses[*]}{.ready} {.containerID}{"\n"}{end}' 2>/dev/null |
        grep -q "^true .*//$now\$"
}
# The kubelet starts a container again after 10, 20, 40 s, and keeps only the last one that ended. A part that waits for
# the API may end once or twice.
keeps_ending() { # part
    containers "$1" exited | grep -vxF -f "$1.before" >>"$1.ended" || :
    [ "$(sort -u "$1.ended" | wc -l)" -ge 3 ]
}
until=$(($(kk_uptime) + 180))
for part in $parts; do
    until ready "$part"; do
        [ "$part" != kube-apiserver ] || hasten_api_server
        if [ "$(kk_uptime)" -ge $until ] || keeps_ending "$part"; then
            crictl logs --tail 15 "$(containers "$part" '' | head -n 1)" >log 2>&1 || :
            cat log >&2
            kk_fail "$part does not become ready with these settings: $(tail -n 1 log)"
        fi
        sleep 0.5 2>/dev/null || sleep 1
    done
done
