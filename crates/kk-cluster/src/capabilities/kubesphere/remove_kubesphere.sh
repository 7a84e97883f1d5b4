# Deletes the ClusterConfiguration and looks every second, until it is ended. An API that does not answer is asked again; that it
# says nothing counts, too. The first look is before the deletion: what is gone at the second one was there.
asked=
if configuration >seen 2>/dev/null && grep -q '^generation' seen; then
    cat seen
    echo end
fi
while :; do
    if [ -z "$asked" ] && ask -n kubesphere-system delete clusterconfigurations.installer.kubesphere.io ks-installer \
        --ignore-not-found --wait=false >/dev/null 2>&1; then
        asked=yes
    fi
    if [ -n "$asked" ] && configuration >seen 2>/dev/null; then
        grep -q '^generation' seen || echo "gone	yes"
        cat seen
    fi
    echo end
    sleep 1
done
