# Functions that the scripts of a rotation share. $round is 1 (trust both CAs), 2 (issue by the new CA) or 3 (trust only the new
# CA).
# shellcheck disable=SC2034,SC2154 # round stands before this script, what uses pki after it
state=/etc/kubekey/rotation pki=/etc/kubernetes/pki
[ -d "$state" ] || mkdir -m 700 "$state"
# keep FILE NAME: saves a copy of the file as it was when the rotation began.
keep() {
    # A power cut may have left an empty file.
    [ ! -s "$state/$2" ] || return 0
    cp -p "$1" "$state/$2.part" && kk_sync "$state/$2.part" && mv -f "$state/$2.part" "$state/$2"
}
# trusted NAME: prints the certificates that are trusted in this round. The first certificate is the CA that signs, because
# kubeadm uses the first one.
trusted() {
    case $round in
    1) cat "$state/$1.old" "$1.new" ;;
    2) cat "$1.new" "$state/$1.old" ;;
    3) cat "$1.new" ;;
    esac
}
# place SOURCE PATH MODE: replaces the file atomically. The file is not added to the ownership record of kk: kubeadm created it,
# and it is removed with its directory.
place() {
    aside=${2%/*}/.${2##*/}.kk-new
    rm -f "$aside" && (umask 077 && cp "$1" "$aside") && chmod "$3" "$aside" && kk_sync "$aside" && mv -f "$aside" "$2"
}
# trust_in KUBECONFIG: replaces its CA by the content of ca.crt.
trust_in() {
    AUTHORITY=$(base64 <ca.crt | tr -d '\n') awk '
        /^ *certificate-authority-data:/ { sub(/:.*/, ": " ENVIRON["AUTHORITY"]) }
        { print }' "$1" >trusting.conf
    place trusting.conf "$1" 600
}
