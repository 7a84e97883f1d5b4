# Makes the kubelet of a node trust the CAs of this round. In the second round, also installs its new certificate.
# shellcheck disable=SC2154 # round, node, rotation.sh and load_haproxy.sh stand before this script
[ "$round" != 1 ] || keep "$pki/ca.crt" ca.old
trusted ca >ca.crt
place ca.crt "$pki/ca.crt" 644
trust_in /etc/kubernetes/kubelet.conf
if [ "$round" = 2 ]; then
    # Like a renewal by the kubelet itself: a file whose name contains the time, and a symbolic link to it.
    of_kubelet=/var/lib/kubelet/pki
    current=$of_kubelet/kubelet-client-current.pem
    new=$of_kubelet/kubelet-client-$(date -u +%Y-%m-%d-%H-%M-%S).pem
    place kubelet-client.pem "$new" 600
    ln -sfn "$new" "$current.new"
    mv -f "$current.new" "$current"
    sed -e "s|client-certificate-data: .*|client-certificate: $current|" -e "s|client-key-data: .*|client-key: $current|" \
        /etc/kubernetes/kubelet.conf >kubelet.conf
    place kubelet.conf /etc/kubernetes/kubelet.conf 600
fi
# haproxy verifies API servers, whose certificates change in the second round.
[ ! -e "$haproxy_cfg" ] || load_haproxy "$node"
systemctl restart kubelet.service
