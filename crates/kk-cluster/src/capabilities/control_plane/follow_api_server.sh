# Replaces the address of the API server in the kubeconfig of the kubelet beside it, and lets the kubelet read it, and its flags.
# shellcheck disable=SC2154 # from, the regular expression of an address, and to stand before this script
file=/etc/kubernetes/kubelet.conf
# What ends here is taken away with the renewal that follows.
aside=/etc/kubernetes/kubekey/renewal
if [ -e $file ] && grep -q "server: https://$from:" $file; then
    (umask 077 && mkdir -p $aside)
    cp -p $file $aside/kubelet.conf
    sed "s|server: https://$from:|server: https://$to:|" $file >$aside/kubelet.conf
    mv -f $aside/kubelet.conf $file
    systemctl daemon-reload
    systemctl restart kubelet.service
fi
