# Fails if something on this host does not belong to the one CA that the host trusts, or is left over from the rotation.
pki=/etc/kubernetes/pki etcd=/etc/ssl/etcd/ssl
one() { [ "$(grep -c BEGIN "$1")" = 1 ] || { echo "$1 holds more than one certificate" >&2; exit 1; }; }
by() { openssl verify -no-CApath -CAfile "$1" "$2" >/dev/null || { echo "$2 is not of $1" >&2; exit 1; }; }
for left in /etc/kubekey/rotation $pki/signing-ca.crt /etc/kubernetes/kubekey/renewal; do
    [ ! -e "$left" ] || { echo "$left is left" >&2; exit 1; }
done
one $pki/ca.crt
by $pki/ca.crt /var/lib/kubelet/pki/kubelet-client-current.pem
authority=$(base64 -w 0 $pki/ca.crt)
for conf in /etc/kubernetes/*.conf /root/.kube/config; do
    [ ! -e "$conf" ] || grep -q "certificate-authority-data: $authority" "$conf" || { echo "$conf trusts another CA" >&2; exit 1; }
    grep -qs client-certificate-data "$conf" || continue
    sed -n 's/^ *client-certificate-data: *//p' "$conf" | base64 -d >/tmp/client.crt
    by $pki/ca.crt /tmp/client.crt
done
[ -e $pki/ca.key ] || exit 0
one $pki/front-proxy-ca.crt
one $etcd/ca.pem
for name in apiserver apiserver-kubelet-client; do by $pki/ca.crt $pki/$name.crt; done
by $pki/front-proxy-ca.crt $pki/front-proxy-client.crt
for file in "$etcd"/member-*.pem "$etcd/apiserver-etcd-client.pem"; do
    case $file in *-key.pem) ;; *) by $etcd/ca.pem "$file" ;; esac
done
[ "$(openssl x509 -in $pki/ca.crt -noout -pubkey)" = "$(openssl pkey -in $pki/ca.key -pubout)" ]
[ "$(openssl x509 -in $etcd/ca.pem -noout -pubkey)" = "$(openssl pkey -in $etcd/ca-key.pem -pubout)" ]
served=$(openssl s_client -connect 127.0.0.1:6443 -CAfile $pki/ca.crt </dev/null 2>&1 | grep 'Verify return code' | tail -n 1)
case $served in *': 0 (ok)'*) ;; *) echo "the API server: $served" >&2; exit 1 ;; esac
