# While an API server restarts, its clients wait longer after each attempt: up to a minute, and a minute at once if it has
# restarted more than once within two minutes. Meanwhile CoreDNS and kube-proxy serve their previous data and look healthy.
# Therefore, if an API server started within the last minutes, this script creates a Service, which all of them have to learn of.
# The limit is 300 s, because a client whose attempt after a minute failed once more is still healthy. A separate task removes the
# Service; a Service that a killed run left is replaced.
# shellcheck disable=SC2154 # domain and routed stand before this script
api_servers() {
    kubectl -n kube-system get pods -l component=kube-apiserver -o go-template='{{range .items}}{{range .status.containerStatuses}}{{with .state.running}}{{.startedAt}}{{"\n"}}{{end}}{{end}}{{end}}' >started
}

since() {
    date -u -d "@$(($(date +%s) - 180))" +%Y-%m-%dT%H:%M:%SZ
}

an_api_server_is_new() {
    KK_SINCE=$(since) awk '$1 >= ENVIRON["KK_SINCE"] { new = 1 } END { exit !new }' started
}

# Lists since when each kube-proxy has been running.
proxies() {
    kubectl -n kube-system get pods -l k8s-app=kube-proxy -o go-template='{{range .items}}{{$node := .spec.nodeName}}{{range .status.containerStatuses}}{{with .state.running}}{{$node}} {{.startedAt}}{{"\n"}}{{end}}{{end}}{{end}}' >proxies
}

# Lists since when each node has existed.
nodes_made() {
    kubectl get nodes -o go-template='{{range .items}}{{.metadata.name}} {{.metadata.creationTimestamp}}{{"\n"}}{{end}}' >nodes.made
}

# A kube-proxy is Ready as soon as its process starts, and the rules of the previous process still route the existing Services.
# Until a new Service is known, nothing shows that the new process works: it may use another mode, or settings that end it a
# moment later.
a_proxy_has_begun_again() {
    within_300_s proxies || return 0
    KK_SINCE=$(since) awk '$2 >= ENVIRON["KK_SINCE"] { print $1 }' proxies >begun
    [ -s begun ] || return 1
    within_300_s nodes_made || return 0
    KK_SINCE=$(since) awk '
        FILENAME == "nodes.made" { made[$1] = $2; next }
        made[$1] < ENVIRON["KK_SINCE"] { again = 1 }
        END { exit !again }' nodes.made begun
}

# Creates the Service and prints its address.
make_service() {
    kubectl -n kube-system delete service kk-verify --ignore-not-found >/dev/null &&
        kubectl -n kube-system create -f - -o 'jsonpath={.spec.clusterIP}' <<'end'
{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "kk-verify"},
 "spec": {"selector": {"k8s-app": "kube-dns"}, "ports": [{"name": "metrics", "port": 9153}]}}
end
}

made_service() {
    make_service >service
}

# CoreDNS also watches namespaces, and resumes that watch separately. A previous namespace whose deletion is blocked is not waited
# for.
make_namespace() {
    kubectl delete namespace kk-verify --ignore-not-found --timeout=20s >/dev/null &&
        kubectl create -f - -o 'jsonpath={.spec.clusterIP}' <<'end'
{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kk-verify"}}
---
{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "kk-verify", "namespace": "kk-verify"},
 "spec": {"ports": [{"name": "metrics", "port": 9153}]}}
end
}

# Uses the host's own resolver with a private view of its configuration files: tools that query a given server are not on every
# host.
resolve() { # SERVER NAME
    printf 'nameserver %s\noptions timeout:1 attempts:1\n' "$1" >resolv.conf
    echo 'hosts: dns' >nsswitch.conf
    # shellcheck disable=SC2016 # for the inner shell
    unshare --mount sh -c 'mount --bind resolv.conf /etc/resolv.conf && mount --bind nsswitch.conf /etc/nsswitch.conf || exit
        [ ! -d /run/nscd ] || mount -t tmpfs tmpfs /run/nscd || exit
        getent ahosts "$1"' - "$2.$domain"
}

knows() { # SERVER
    resolve "$1" kk-verify.kube-system.svc >known 2>/dev/null && grep -qF "$(cat service) " known || return 1
    [ ! -s namespace ] || { resolve "$1" kk-verify.kk-verify.svc >known 2>/dev/null && grep -qF "$(cat namespace) " known; }
}

# Prints where the Service answers: a name, a tab, and a URL. A pod that resolves no name at all is left to the tasks that query
# pods, which report the nodes that get no answer.
new_service_is_known() {
    within_300_s api_servers || {
        cat wait.err >&2
        kk_fail "the API does not say since when its servers run"
    }
    an_api_server_is_new || { [ -n "$routed" ] && a_proxy_has_begun_again; } || return 0
    within_300_s made_service || {
        cat wait.err >&2
        kk_fail "a Service could not be made to see whether the nodes learn of it"
    }
    make_namespace >namespace 2>/dev/null || : >namespace
    answer present_pods kube-system k8s-app=kube-dns >present || return
    until=$(($(kk_uptime) + 300))
    while read -r node pod is_ready address _; do
        [ "$is_ready" = True ] || continue
        until knows "$address"; do
            if [ "$(kk_uptime)" -ge $until ]; then
                resolve "$address" kubernetes.default.svc >/dev/null 2>&1 || break
                kubectl delete namespace kk-verify --ignore-not-found --wait=false >/dev/null || :
                kubectl -n kube-system delete service kk-verify --ignore-not-found >/dev/null || :
                kk_fail "since an API server or kube-proxy started again, pod $pod of $node has learnt of no new Service within 300 s"
            fi
            sleep 0.5 2>/dev/null || sleep 1
        done
    done <present
    [ -z "$routed" ] || {
        address=$(cat service)
        case $address in *:*) address="[$address]" ;; esac
        printf 'a new Service\thttp://%s:9153/metrics\n' "$address"
    }
}
