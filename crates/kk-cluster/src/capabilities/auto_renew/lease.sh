# The Lease by which control planes take turns, and how the program ends. Its holder is ended by systemd after 45 minutes;
# after an hour the turn of one that died with its host is over.
# shellcheck disable=SC2154 # node stands before this script
lease=k8s-certs-renew held='' has_host='' seconds_of_lease=3600
deadline=$(($(kk_uptime) + 1500))

# object [VERSION]: the Lease, held by this node from now on.
object() {
    printf '{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"namespace":"kube-system","name":"%s","resourceVersion":"%s"},' "$lease" "${1-}"
    printf '"spec":{"holderIdentity":"%s","leaseDurationSeconds":%s,"renewTime":"%s"}}\n' "$node" $seconds_of_lease "$(date -u +%Y-%m-%dT%H:%M:%S.000000Z)"
}
of_lease() { # VERB OPTION…
    kubectl --request-timeout 10s -n kube-system "$@" 2>lease.err
}

# Whether the turn is this node's now. The API server lets only one of several win: a name can be made once, and a version
# replaced once.
try_lease() {
    object >lease.json
    ! of_lease create -f lease.json >/dev/null || return 0
    grep -q AlreadyExists lease.err || return 1
    of_lease get lease "$lease" -o jsonpath='{.metadata.resourceVersion} {.spec.renewTime} {.spec.holderIdentity}' >lease.is || return 1
    read -r version since holder <lease.is || [ -n "$version" ] || return 1
    age=$(($(date +%s) - $(date -u -d "$since" +%s)))
    # One from the time to come was taken by a clock that was wrong.
    if [ "$holder" != "$node" ] && [ $age -gt -300 ] && [ $age -lt $seconds_of_lease ]; then
        echo "it is the turn of $holder" >lease.err
        return 1
    fi
    object "$version" >lease.json
    of_lease replace -f lease.json >/dev/null
}
take_lease() {
    until try_lease; do
        [ "$(kk_uptime)" -lt "$deadline" ] ||
            kk_fail "the Lease kube-system/$lease does not become free; kk create cluster renews without it: $(tail -n 1 lease.err)"
        sleep 5
    done
    held=yes
}

# A failure gives the turn back, too: the next one begins only when all API servers are ready.
finish() {
    code=$?
    trap '' INT TERM
    [ -z "$has_host" ] || kk_unlock
    if [ -n "$held" ]; then
        for _ in 1 2 3 4 5 6; do
            ! of_lease delete lease "$lease" --ignore-not-found --wait=false >/dev/null || break
            sleep 5
        done
    fi
    cd /
    rm -rf "$work"
    exit $code
}
trap finish EXIT
trap 'exit 1' INT TERM
