# Prints the state of addons as lines of tab-separated fields. The last line is `end` only if all queries were answered. `timeout`
# bounds each kubectl, because kubectl's own timeout applies to each of its requests.
# shellcheck disable=SC2154 # server, names, open, notes and template stand before this script
set -e
ask() {
    KUBECONFIG=/etc/kubernetes/admin.conf KUBECACHEDIR="$PWD/cache" timeout -k 1 40 kubectl --server "$server" --request-timeout 4s "$@"
}

for note in "$notes"/addon-*; do
    case ${note#"$notes"/} in
    *.*) continue ;;
    esac
    [ -e "$note" ] || continue
    name=${note#"$notes"/addon-}
    printf 'Note\t%s\t%s\n' "$name" "$(cat "$note")"
    [ ! -s "$note.release" ] || printf 'Installed\t%s\t%s\n' "$name" "$(cat "$note.release")"
done
if [ -e /etc/kubernetes/admin.conf ]; then
    if [ -n "$names" ]; then
        # The server formats the table, so that the content of the Secrets is not transferred.
        releases=$(ask get secrets --all-namespaces -l "owner=helm,name in ($names)" -L name,status,version --no-headers)
        printf '%s\n' "$releases" | awk 'NF >= 8 { printf "Release\t%s/%s\t%s\t%s\n", $1, $6, $8, $7 }'
    fi
    # Only helm can read the version of the chart in a release. Without an answer, the version is unknown.
    if [ -n "$open" ] && command -v helm >/dev/null; then
        charts=$(HELM_CACHE_HOME="$PWD/helm" HELM_CONFIG_HOME="$PWD/helm" HELM_DATA_HOME="$PWD/helm" timeout -k 1 40 \
            helm --kubeconfig /etc/kubernetes/admin.conf --kube-apiserver "$server" list --all-namespaces --all \
            --filter "^($open)\$" --output json 2>/dev/null) || charts=
        printf 'Charts\t%s\n' "$charts"
    fi
    for objects in "$notes"/addon-*.objects; do
        [ -e "$objects" ] || continue
        : >addon-objects
        if [ -s "$objects" ]; then
            # kubectl fails for a kind that the API no longer has, as it does for an API that does not respond.
            ask get --raw /readyz >/dev/null
            ask get --ignore-not-found -f "$objects" -o go-template="$template" >addon-objects || :
        fi
        name=${objects#"$notes"/addon-}
        awk -v name="${name%.objects}" '/^# / && NR == FNR { wanted++; of[$0] } NR != FNR && $0 in of { there++ }
            END { printf "Objects\t%s\t%d\t%d\n", name, wanted, there }' "$objects" addon-objects
    done
fi
echo end
