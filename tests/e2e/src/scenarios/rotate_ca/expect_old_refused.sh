# Fails if a CA is still the previous one, or if the administrator's previous certificate is still accepted. The server's
# certificate is not verified: otherwise the previous kubeconfig would fail for that reason alone.
other() { ! cmp -s "$1" "$2" || { echo "$2 is the one of before" >&2; exit 1; }; }
other /tmp/old-ca.crt /etc/kubernetes/pki/ca.crt
other /tmp/old-etcd-ca.pem /etc/ssl/etcd/ssl/ca.pem
field() { sed -n "s/^ *$1: *//p" "$2"; }
ask() { # kubeconfig: the status with which the API server of this host answers
    field client-certificate-data "$1" | base64 -d >/tmp/asking.crt
    field client-key-data "$1" | base64 -d >/tmp/asking.key
    curl --silent --insecure --max-time 5 --cert /tmp/asking.crt --key /tmp/asking.key -o /dev/null -w '%{http_code}' \
        "https://127.0.0.1:6443/api/v1/namespaces/default"
    rm -f /tmp/asking.crt /tmp/asking.key
}
old=$(ask /tmp/old.conf) new=$(ask /etc/kubernetes/admin.conf)
[ "$old" = 401 ] && [ "$new" = 200 ] || { echo "the old certificate got $old, the new one $new" >&2; exit 1; }
