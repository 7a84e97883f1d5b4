# With $manifests, writes the manifests of the static pods; those named in $again start again in any case. Then waits until
# what runs from them is ready. Parts that stay are looked at, too: a run before this one may have been killed while it
# waited.
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
for part in $parts; do
    sum "$part" >"$part.sum" || :
    containers "$part" '' >"$part.before"
done
[ -z "$manifests" ] || kubeadm init phase control-plane all --config config.yaml
# One that keeps ending is not started for up to 5 minutes. A new kubelet knows nothing of that.
waits=
for part in $again; do
    now=$(containers "$part" running | head -n 1)
    if [ -n "$now" ]; then
        crictl --timeout 60s stop --timeout 30 "$now" >/dev/null
    else
        waits=yes
    fi
done
[ -z "$waits" ] || systemctl restart kubelet.service
# A container that runs, started from the manifest of now, and that the kubelet's probes find well. An API server answers
# before the kubelet has reported its new pod.
ready() { # part
    now=$(containers "$1" running | head -n 1)
    [ -n "$now" ] || return 1
    if { is_again "$1" || [ "$(sum "$1")" != "$(cat "$1.sum")" ]; } && grep -qxF "$now" "$1.before"; then
        return 1
    fi
    if [ "$1" = kube-apiserver ]; then
        kubectl --server "$server" --request-timeout 5s get --raw /readyz >/dev/null 2>&1 || return 1
    fi
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
        if [ "$(kk_uptime)" -ge $until ] || keeps_ending "$part"; then
            crictl logs --tail 15 "$(containers "$part" '' | head -n 1)" >log 2>&1 || :
            cat log >&2
            kk_fail "$part does not become ready with these settings: $(tail -n 1 log)"
        fi
        sleep 0.5 2>/dev/null || sleep 1
    done
done
