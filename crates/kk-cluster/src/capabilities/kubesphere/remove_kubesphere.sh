# Deletes the ClusterConfiguration and looks every second, until it is ended. An API that does not answer is asked again; that it
# says nothing counts, too, and what it says instead is told. The first look is before the deletion: what is gone at the second one
# was there.
tell_error() {
    [ ! -s error ] || printf 'error\t%s\n' "$(grep -v '^$' error | tail -n 1)"
}
asked=
if configuration >seen 2>/dev/null && grep -q '^generation' seen; then
    cat seen
    echo end
fi
while :; do
    if [ -z "$asked" ]; then
        if ask -n kubesphere-system delete clusterconfigurations.installer.kubesphere.io ks-installer \
            --ignore-not-found --wait=false >/dev/null 2>error; then
            asked=yes
        else
            tell_error
        fi
    fi
    if [ -n "$asked" ]; then
        if configuration >seen 2>error; then
            grep -q '^generation' seen || echo "gone	yes"
            cat seen
        else
            tell_error
        fi
    fi
    echo end
    sleep 1
done
