# Functions that set another validity for certificates of a cluster. Keys, subjects and names stay; the CA of the cluster signs.

# sign CERT KEY CA CAKEY BEGIN END: CERT again, valid from BEGIN to END (as `date -d` reads them).
sign() {
    work=$(mktemp -d)
    printf '%s\n' '[ca]' 'default_ca = x' '[x]' "database = $work/index" "new_certs_dir = $work" 'default_md = sha256' \
        'rand_serial = yes' 'unique_subject = no' 'policy = any' 'copy_extensions = copy' 'preserve = yes' \
        '[any]' 'commonName = supplied' 'organizationName = optional' >"$work/ca.cnf"
    : >"$work/index"
    openssl x509 -x509toreq -copy_extensions copyall -in "$1" -signkey "$2" -out "$work/request" 2>/dev/null
    openssl ca -batch -notext -config "$work/ca.cnf" -cert "$3" -keyfile "$4" -in "$work/request" -out "$work/new" \
        -startdate "$(date -u -d "$5" +%Y%m%d%H%M%SZ)" -enddate "$(date -u -d "$6" +%Y%m%d%H%M%SZ)" 2>"$work/said" || {
        cat "$work/said" >&2
        return 1
    }
    cat "$work/new" >"$1"
    rm -r "$work"
}

# sign_kubeconfig FILE BEGIN END: the client certificate in FILE again.
sign_kubeconfig() {
    data() { sed -n "s/^ *$1: *//p" "$file"; }
    file=$1
    data client-certificate-data | base64 -d >/tmp/kubeconfig.crt
    (umask 077 && data client-key-data | base64 -d >/tmp/kubeconfig.key)
    sign /tmp/kubeconfig.crt /tmp/kubeconfig.key "$pki/ca.crt" "$pki/ca.key" "$2" "$3"
    sed -i "s|client-certificate-data: .*|client-certificate-data: $(base64 -w 0 </tmp/kubeconfig.crt)|" "$file"
    rm /tmp/kubeconfig.crt /tmp/kubeconfig.key
}

# shellcheck disable=SC2034 # for what follows
pki=/etc/kubernetes/pki etcd=/etc/ssl/etcd/ssl kubelet=/var/lib/kubelet/pki
