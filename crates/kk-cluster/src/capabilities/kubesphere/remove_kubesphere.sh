# Deletes the ClusterConfiguration and prints the state every second, until the script is ended. If the API does not answer, it is
# queried again: a missing answer counts, too, and errors are printed. The first query is before the deletion: a component that is
# missing in the second one existed before.
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
