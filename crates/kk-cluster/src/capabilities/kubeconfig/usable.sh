# Whether the kubeconfig $theirs reaches this cluster: it holds its CA, and its administrator's certificate is that of
# admin.conf or valid for 30 days.
# shellcheck disable=SC2154 # theirs stands before this script
ours=/etc/kubernetes/admin.conf
usable() {
    [ -e $ours ] && [ -f "$theirs" ] || return 1
    ca=$(sed -n 's/^ *certificate-authority-data: *//p' $ours | head -n 1)
    [ -n "$ca" ] && grep -qF -e "$ca" "$theirs" || return 1
    certificate=$(awk '/name: kubernetes-admin$/ { on = 1 } on && /client-certificate-data:/ { print $2; exit }' "$theirs")
    [ -n "$certificate" ] || return 1
    ! grep -qF -e "$certificate" $ours || return 0
    command -v openssl >/dev/null || return 0
    printf '%s\n' "$certificate" | base64 -d 2>/dev/null | openssl x509 -noout -checkend 2592000 >/dev/null 2>&1
}
if usable; then echo yes; else echo no; fi
