# Lets the static pods of the control plane run from what $manifests, the name of a function, writes into $staged, and those
# named in $again read their files again. Then waits until what runs is ready. Parts that stay are looked at, too: a run before
# this one may have been killed while it waited.
#
# A part starts again as a new pod: its manifest goes, the kubelet ends the pod, and then the manifest comes. While the kubelet
# still knows a static pod of that name, as it does when a manifest is replaced, it tries to start the new one again after 10
# to 15 s only. Without the API for 10 s, controller manager and scheduler end, and the kubelet starts what has ended only after
# 10, 20, 40 s, up to 5 minutes. A pod without sandboxes of before has no such pause.
# shellcheck disable=SC2154,SC2034 # server, node, again and manifests stand before this script
parts='kube-apiserver kube-controller-manager kube-scheduler'
directory=/etc/kubernetes/manifests staged=/etc/kubernetes/kubekey/manifests
# Control planes of other clusters may run here as pods, with containers of the same names: only the pod of this node counts.
containers() { # part, state (empty: all)
    crictl ps -a -q ${2:+--state "$2"} --name "^$1\$" --label "io.kubernetes.pod.name=$1-$node"
}
is_one_of() { # part, parts
    case " $2 " in *" $1 "*) ;; *) return 1 ;; esac
}
write_by_kubeadm() {
    # shellcheck disable=SC2016 # for the inner shell
    unshare --mount sh -c 'mount --bind "$1" "$2" && kubeadm init phase control-plane all --config config.yaml' - "$staged" "$directory"
}
# What one API server does not answer any more, others do, and watchers come back by themselves. Asked to end, it waits for
# them: for longer than the 30 s after which the kubelet ends it.
grace=1
answers() {
    kubectl --server "$server" --request-timeout 5s get --raw /readyz >/dev/null 2>&1
}
# Once it does not say any more that it is ready, the kubelet has asked it to end.
hasten_api_server() {
    old=$(containers kube-apiserver running | head -n 1)
    [ -z "$old" ] || answers || crictl --timeout 60s stop --timeout "$grace" "$old" >/dev/null 2>&1 || :
}
# The kubelet removes the directory of a pod when it has ended for good.
is_gone() { # part
    [ -z "$(containers "$1" running)" ] || return 1
    while read -r uid; do
        [ ! -e "/var/lib/kubelet/pods/$uid" ] || return 1
    done <"$1.uids"
}
# Every 100 ms the kubelet looks whether that directory is gone, and only then forgets the pod. Nothing outside shows that. Where
# it is later than this, the new pod starts 10 to 15 s late.
let_the_kubelet_forget() {
    sleep 0.5 2>/dev/null || sleep 1
}
# The kubelet, too, may wait for a minute before it asks the API again, and then learns of its own new pod: see new_service.sh.
until=$(($(kk_uptime) + 300))
# The manifest is beside its place before that of before goes: then a disk that is full takes no part away. The kubelet reads no
# file whose name begins with a dot.
place() { # part
    cp -p "$staged/$1.yaml" "$directory/.$1.yaml" || {
        rm -f "$directory/.$1.yaml"
        return 1
    }
}
bring() { # part
    while read -r pod; do
        crictl --timeout 60s rmp -f "$pod" >/dev/null 2>&1 || :
    done <"$1.pods"
    mv -f "$directory/.$1.yaml" "$directory/$1.yaml"
}
# A kubelet that was started when no API answered does not know which pods are wanted, and ends none. It goes on, also when there
# is no room for the manifest: then with that of before.
without_kubelet() { # part
    systemctl stop kubelet.service
    brought=
    if place "$1" && bring "$1"; then brought=yes; fi
    systemctl start kubelet.service
    [ -n "$brought" ]
}
start_anew() { # part
    crictl pods -q --label "io.kubernetes.pod.name=$1-$node" >"$1.pods"
    if ! answers; then
        without_kubelet "$1"
        return
    fi
    while read -r pod; do
        crictl inspectp -o go-template --template '{{index .status.labels "io.kubernetes.pod.uid"}}' "$pod" || :
    done <"$1.pods" >"$1.uids"
    place "$1" || return
    rm -f "$directory/$1.yaml"
    has_ended=yes
    until is_gone "$1"; do
        if [ "$(kk_uptime)" -ge $until ]; then
            has_ended=
            break
        fi
        [ "$1" != kube-apiserver ] || hasten_api_server
        sleep 0.2 2>/dev/null || sleep 1
    done
    if [ -n "$has_ended" ]; then let_the_kubelet_forget; else : >"$1.pods"; fi
    bring "$1"
    [ -n "$has_ended" ] || kk_fail "the kubelet has not ended the pod of $1 within 300 s"
}
# A shell of its own ends what it has begun: nobody would bring a manifest that is away.
restart() { # part
    : >"$1.restarted"
    (trap '' HUP INT TERM && start_anew "$1")
}
# A container that runs, started from the manifest of now, and that the kubelet's probes find well. An API server answers
# before the kubelet has reported its new pod.
ready() { # part
    now=$(containers "$1" running | head -n 1)
    [ -n "$now" ] || return 1
    [ ! -e "$1.restarted" ] || ! grep -qxF "$now" "$1.before" || return 1
    [ "$1" != kube-apiserver ] || answers || return 1
    # The identifier in the status has the runtime's name before it: containerd://…
    kubectl --server "$server" --request-timeout 5s -n kube-system get pod "$1-$node" \
        -o jsonpath='{range .status.containerStatuses[*]}{.ready} {.containerID}{"\n"}{end}' 2>/dev/null |
        grep -q "^true .*//$now\$"
}
# Of those that ended, the kubelet keeps only the last. A part that waits for the API may end once or twice.
keeps_ending() { # part
    containers "$1" exited | grep -vxF -f "$1.before" >>"$1.ended" || :
    [ "$(sort -u "$1.ended" | wc -l)" -ge 3 ]
}
wait_for() { # part
    until ready "$1"; do
        # One that has ended without the API, or before this script, is not started for a while.
        if [ ! -e "$1.restarted" ] && [ -z "$(containers "$1" running)" ]; then
            restart "$1"
            continue
        fi
        if [ "$(kk_uptime)" -ge $until ] || keeps_ending "$1"; then
            crictl logs --tail 15 "$(containers "$1" '' | head -n 1)" >log 2>&1 || :
            cat log >&2
            kk_fail "$1 does not become ready with these settings: $(tail -n 1 log)"
        fi
        sleep 0.5 2>/dev/null || sleep 1
    done
}
# shellcheck disable=SC2174 # the directory above it is there
mkdir -p -m 700 "$staged"
# A manifest that is away was staged by a run that ended with its host.
for part in $parts; do
    [ ! -e "$directory/$part.yaml" ] || cp -p "$directory/$part.yaml" "$staged/"
    containers "$part" '' >"$part.before"
done
[ -z "$manifests" ] || "$manifests"
changed=
for part in $parts; do
    [ -e "$staged/$part.yaml" ] || kk_fail "$directory/$part.yaml is not there; kk create cluster writes it again"
    ! is_one_of "$part" "$again" && cmp -s "$staged/$part.yaml" "$directory/$part.yaml" || changed="$changed $part"
done
# The kubelet does the rest.
[ -z "$changed" ] || systemctl start kubelet.service
# The API server first: the others are nothing without it, and stay as they are where it does not become ready.
if is_one_of kube-apiserver "$changed"; then restart kube-apiserver; fi
wait_for kube-apiserver
for part in kube-controller-manager kube-scheduler; do
    if is_one_of "$part" "$changed"; then restart "$part"; fi
done
for part in kube-controller-manager kube-scheduler; do wait_for "$part"; done
rm -rf "$staged"
