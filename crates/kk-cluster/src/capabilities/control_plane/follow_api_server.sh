# Replaces the address of the host's API server in the kubeconfig of its kubelet, and restarts the kubelet with its new kubeconfig
# and flags.
# shellcheck disable=SC2154 # from, the regular expression of an address, and to stand before this script
file=/etc/kubernetes/kubelet.conf
# Files of a script that is killed here are removed with the renewal that follows.
aside=/etc/kubernetes/kubekey/renewal
if [ -e $file ] && grep -q "server: https://$from:" $file; then
    (umask 077 && mkdir -p $aside)
    cp -p $file $aside/kubelet.conf
    sed "s|server: https://$from:|server: https://$to:|" $file >$aside/kubelet.conf
    mv -f $aside/kubelet.conf $file
    systemctl daemon-reload
    systemctl restart kubelet.service
fi
