# Prints the certificates of this host, without their keys. Each is preceded by a line "@NAME KEY CA SERVER": KEY is "key" if
# there is a private key for it, CA is "ca" if a kubeconfig contains the CA of the cluster. The certificate follows as PEM, or as
# PEM in Base64 as in kubeconfigs. "end" is the last line.
# One awk reads all files: a process for each of their fields costs more than the rest of the probe.
pki=/etc/kubernetes/pki kubelet=/var/lib/kubelet/pki
set -e
authority=
# The key of the CA may be lost or kept elsewhere, so a manifest counts as well.
if [ -e $pki/ca.key ] || [ -e /etc/kubernetes/manifests/kube-apiserver.yaml ]; then
    [ ! -e $pki/ca.crt ] || authority=$(base64 <$pki/ca.crt | tr -d '\n')
    set -- "$@" apiserver $pki/apiserver.crt $pki/apiserver.key
    set -- "$@" apiserver-kubelet-client $pki/apiserver-kubelet-client.crt $pki/apiserver-kubelet-client.key
    set -- "$@" front-proxy-client $pki/front-proxy-client.crt $pki/front-proxy-client.key
    for name in admin super-admin controller-manager scheduler; do set -- "$@" $name.conf /etc/kubernetes/$name.conf -; done
    set -- "$@" ca $pki/ca.crt $pki/ca.key front-proxy-ca $pki/front-proxy-ca.crt $pki/front-proxy-ca.key
fi
set -- "$@" kubelet-client $kubelet/kubelet-client-current.pem $kubelet/kubelet-client-current.pem
set -- "$@" kubelet-server $kubelet/kubelet.crt $kubelet/kubelet.key
# A missing file is skipped; an unreadable file is a failure.
at=$#
while [ $at -gt 0 ]; do
    if [ -e "$2" ]; then
        [ -r "$2" ]
        if [ "$3" != - ] && [ ! -r "$3" ]; then set -- "$@" "$1" "$2" -; else set -- "$@" "$1" "$2" "$3"; fi
    fi
    shift 3
    at=$((at - 3))
done
AUTHORITY=$authority awk '
    function field(line) {
        sub(/^[^:]*: */, "", line)
        return line
    }
    function has_key(file, line, found) {
        if (file == "-") return 0
        while ((getline line <file) > 0) if (line ~ /PRIVATE KEY/) found = 1
        close(file)
        return found
    }
    function pem(name, file, key, line, on) {
        print "@" name, (has_key(key) ? "key" : "-"), "-", "-"
        while ((getline line <file) > 0) {
            if (line ~ /-----BEGIN CERTIFICATE-----/) on = 1
            if (on) print line
            if (line ~ /-----END CERTIFICATE-----/) on = 0
        }
        close(file)
    }
    function kubeconfig(name, file, line, key, ca, server, certificate) {
        while ((getline line <file) > 0) {
            if (key == "" && line ~ /^ *client-key-data:/) key = field(line)
            if (ca == "" && line ~ /^ *certificate-authority-data:/) ca = field(line)
            if (server == "" && line ~ /^ *server:/) server = field(line)
            if (certificate == "" && line ~ /^ *client-certificate-data:/) certificate = field(line)
        }
        close(file)
        ca = ca != "" && ca == ENVIRON["AUTHORITY"]
        print "@" name, (key == "" ? "-" : "key"), (ca ? "ca" : "-"), server
        print certificate
    }
    BEGIN {
        for (i = 1; i < ARGC; i += 3) {
            if (ARGV[i] ~ /\.conf$/) kubeconfig(ARGV[i], ARGV[i + 1])
            else pem(ARGV[i], ARGV[i + 1], ARGV[i + 2])
        }
        print "end"
    }' "$@"
