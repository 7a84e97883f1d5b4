# Prints the deprecated APIs that clients have requested since this API server started, in the format of its metric. Then prints
# the clients that have written objects through APIs that will be removed: the managers of fields of the first 500 objects, one on
# each line, with fields separated by tabs. Clients that only read leave no trace. "end" is the last line.
# shellcheck disable=SC2154 # server stands before this script
set -e
export KUBECONFIG=/etc/kubernetes/admin.conf KUBECACHEDIR="$PWD/cache"
get() { # PATH
    timeout -k 1 20 kubectl --server "$server" --request-timeout 15s get --raw "$1" 2>/dev/null
}
get /metrics >metrics
grep '^apiserver_requested_deprecated_apis{' metrics >apis || :
cat apis
# The metric sorts labels by name. No API of the core group has a release that removes it.
sed -nE 's/.*[{]group="([^"]+)",removed_release="[^"]+",resource="([^"]+)",.*version="([^"]+)".*/\1 \2 \3/p' apis | sort -u | head -n 8 >gone
while read -r group resource version; do
    get "/apis/$group/$version/$resource?limit=500" >objects || continue
    { grep -oE "\"manager\":\"[^\"]*\",\"operation\":\"[A-Za-z]*\",\"apiVersion\":\"$group/$version\"" objects || :; } |
        cut -d '"' -f 4 | sort | uniq -c | sort -rn | head -n 5 | while read -r _ manager; do
        printf 'Manager\t%s of %s/%s\t%s\n' "$resource" "$group" "$version" "$manager"
    done
done <gone
echo end
