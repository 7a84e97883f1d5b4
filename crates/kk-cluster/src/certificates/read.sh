# Prints the certificates of this host, without their keys. A line "@NAME KEY CA SERVER" comes before each: KEY is "key"
# where a private key lies beside it, CA is "ca" where a kubeconfig holds the CA of the cluster. Then the certificate: PEM,
# or PEM in Base64 as kubeconfigs have it. "end" is last.
pki=/etc/kubernetes/pki kubelet=/var/lib/kubelet/pki
pem() { # name, file, file of the key
    [ -e "$2" ] || return 0
    key=-
    ! grep -qs 'PRIVATE KEY' "$3" || key=key
    echo "@$1 $key - -"
    sed -n '/-----BEGIN CERTIFICATE-----/,/-----END CERTIFICATE-----/p' "$2"
}
field() { # name, file
    sed -n "s/^ *$1: *//p" "$2" | head -n 1
}
kubeconfig() { # name
    file=/etc/kubernetes/$1
    [ -e "$file" ] || return 0
    key=- ca=-
    [ -z "$(field client-key-data "$file")" ] || key=key
    if [ -n "$authority" ] && [ "$(field certificate-authority-data "$file")" = "$authority" ]; then ca=ca; fi
    echo "@$1 $key $ca $(field server "$file")"
    field client-certificate-data "$file"
}
set -e
if [ -e $pki/ca.key ]; then
    authority=$(base64 <$pki/ca.crt | tr -d '\n')
    for name in apiserver apiserver-kubelet-client front-proxy-client; do pem $name $pki/$name.crt $pki/$name.key; done
    for name in admin super-admin controller-manager scheduler; do kubeconfig $name.conf; done
    for name in ca front-proxy-ca; do pem $name $pki/$name.crt $pki/$name.key; done
fi
pem kubelet-client $kubelet/kubelet-client-current.pem $kubelet/kubelet-client-current.pem
pem kubelet-server $kubelet/kubelet.crt $kubelet/kubelet.key
echo end
