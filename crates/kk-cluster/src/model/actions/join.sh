# Joins the node. First it removes the files of a kubelet without a valid certificate, because kubeadm would treat them as
# credentials.
# No kubelet runs meanwhile: a kubelet without a kubeconfig would use the token that kubeadm writes first, get credentials by
# itself, and report a Ready node, which kubeadm refuses.
# shellcheck disable=SC2154 # ignored stands before this script
mkdir -p /etc/kubernetes/kubekey
: >/etc/kubernetes/kubekey/joining
systemctl stop kubelet.service 2>/dev/null || :
conf=/etc/kubernetes/kubelet.conf
pem=$(sed -n 's/^ *client-certificate: *//p' $conf 2>/dev/null | head -n 1)
if [ -e $conf ] && { [ -z "$pem" ] || [ ! -s "$pem" ] || ! openssl x509 -noout -checkend 0 -in "$pem" >/dev/null; }; then
    rm -f $conf /etc/kubernetes/bootstrap-kubelet.conf /var/lib/kubelet/pki/kubelet-client-*
fi
# kubeadm refuses a node that the API shows as Ready. If its kubelet has just stopped, the API shows that for 40 s more.
until=$(($(kk_uptime) + 90))
until kubeadm join --config join.yaml --ignore-preflight-errors="$ignored" 2>join.err; do
    if ! grep -q 'status "Ready" already exists' join.err || [ "$(kk_uptime)" -ge $until ]; then
        cat join.err >&2
        echo 'kk-command: kubeadm join' >&2
        false
    fi
    sleep 3
done
cat join.err >&2
