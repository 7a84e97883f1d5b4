# Makes $names again, certificates and kubeconfigs. Each is made aside and then renamed, so that there is always one. Their
# names stay in the directory until it is removed: a key without its certificate, and a program that has not read the new
# one, are taken up by the next run. With $keep, certificates are for the names for which they are now.
# shellcheck disable=SC2154,SC2086 # names and keep stand before this script; names is a list of words
pki=/etc/kubernetes/pki aside=/etc/kubernetes/kubekey/renewal
mkdir -p /etc/kubernetes/kubekey
# shellcheck disable=SC2174 # the directory above it was just made
mkdir -p -m 700 "$aside"
printf '%s\n' $names >"$aside/names.new"
[ ! -e "$aside/names" ] || cat "$aside/names" >>"$aside/names.new"
mv -f "$aside/names.new" "$aside/names"
rm -rf "$aside/pki"
mkdir "$aside/pki"
for name in ca.crt ca.key front-proxy-ca.crt front-proxy-ca.key; do ln -s "$pki/$name" "$aside/pki/$name"; done
sed "s|^certificatesDir:.*|certificatesDir: $aside/pki|" config.yaml >aside.yaml
# The kubelet gets the certificate as the file that it renews; kubeadm does the same at the end of an init.
kubelet_credentials() {
    field() { sed -n "s/^ *$1: *//p" "$aside/kubelet.conf"; }
    current=/var/lib/kubelet/pki/kubelet-client-current.pem
    pem=/var/lib/kubelet/pki/kubelet-client-$(date -u +%Y-%m-%d-%H-%M-%S).pem
    mkdir -p /var/lib/kubelet/pki
    (umask 077 && { field client-certificate-data | base64 -d && field client-key-data | base64 -d; } >"$pem")
    ln -sf "$pem" "$current.new"
    mv -f "$current.new" "$current"
    sed -i -e "s|client-certificate-data: .*|client-certificate: $current|" \
        -e "s|client-key-data: .*|client-key: $current|" "$aside/kubelet.conf"
}
for name in $names; do
    case $name in
    *.conf)
        rm -f "$aside/$name"
        kk_do kubeadm init phase kubeconfig "${name%.conf}" --config aside.yaml --kubeconfig-dir "$aside"
        # kubeadm takes the first CA of the file only. While the CA is replaced, there are two.
        sed -i "s|certificate-authority-data: .*|certificate-authority-data: $(base64 <"$pki/ca.crt" | tr -d '\n')|" "$aside/$name"
        [ "$name" != kubelet.conf ] || kubelet_credentials
        mv -f "$aside/$name" "/etc/kubernetes/$name"
        [ "$name" != kubelet.conf ] || systemctl restart kubelet.service
        ;;
    *)
        if [ -n "$keep" ]; then
            cp "$pki/$name.crt" "$aside/pki/"
            kk_do kubeadm certs renew "$name" --config aside.yaml
        else
            kk_do kubeadm init phase certs "$name" --config aside.yaml
        fi
        mv -f "$aside/pki/$name.key" "$pki/$name.key"
        mv -f "$aside/pki/$name.crt" "$pki/$name.crt"
        ;;
    esac
done
