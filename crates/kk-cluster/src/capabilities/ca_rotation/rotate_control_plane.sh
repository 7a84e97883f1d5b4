# Installs the CAs of the cluster and of the front proxy on a control plane.
# shellcheck disable=SC2154 # round and what is in rotation.sh stand before this script
if [ "$round" = 1 ]; then
    keep "$pki/ca.crt" ca.old
    keep "$pki/front-proxy-ca.crt" front-proxy-ca.old
    # The timer would renew certificates in the middle of the rotation.
    systemctl stop k8s-certs-renew.timer 2>/dev/null || :
fi
keep /etc/kubernetes/admin.conf "admin.conf.$round"
for name in ca front-proxy-ca; do trusted $name >$name.crt; done
if [ "$round" = 2 ]; then
    for name in ca front-proxy-ca; do place $name.key "$pki/$name.key" 600; done
fi
for name in ca front-proxy-ca; do place $name.crt "$pki/$name.crt" 644; done
# The controller manager signs with one certificate, and refuses a file with two.
case $round in
1) place "$state/ca.old" "$pki/signing-ca.crt" 644 ;;
2) place ca.new "$pki/signing-ca.crt" 644 ;;
esac
