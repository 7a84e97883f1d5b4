# Functions for haproxy, which reads its configuration and the CA of the cluster only when it starts or reloads. A note contains the
# checksum of both files at the last load.
haproxy_cfg=/etc/kubekey/haproxy/haproxy.cfg haproxy_note=/etc/kubekey/haproxy/loaded haproxy_ca=/etc/kubernetes/pki/ca.crt
haproxy_sum() {
    cat "$haproxy_cfg" "$haproxy_ca" 2>/dev/null | sha256sum | cut -d ' ' -f 1
}
haproxy_is_loaded() {
    [ -e "$haproxy_cfg" ] && [ "$(cat "$haproxy_note" 2>/dev/null)" = "$(haproxy_sum)" ]
}
# load_haproxy NODE: reloads the haproxy of this node. The port stays open meanwhile. If the configuration is wrong, the previous
# configuration stays in use. A haproxy that does not run yet reads both when it starts.
load_haproxy() {
    haproxy_new=$(haproxy_sum)
    haproxy_id=$(crictl ps -q --state running --name '^haproxy$' --label "io.kubernetes.pod.name=haproxy-$1" | head -n 1)
    if [ -n "$haproxy_id" ]; then
        kk_do crictl exec -s "$haproxy_id" haproxy -c -q -f "$haproxy_cfg" || return
        haproxy_pid=$(crictl inspect "$haproxy_id" | sed -n 's/^ *"pid": *\([0-9][0-9]*\),*$/\1/p' | head -n 1) || return
        [ -n "$haproxy_pid" ] || kk_fail "the runtime does not name the process of haproxy" || return
        kill -USR2 "$haproxy_pid" || return
    fi
    echo "$haproxy_new" >"$haproxy_note.part" && mv -f "$haproxy_note.part" "$haproxy_note"
}
