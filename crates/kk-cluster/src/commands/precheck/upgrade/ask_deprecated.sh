# Prints the deprecated APIs that were asked for at this API server since it runs, as its metric names them, and who has written
# objects by those that go: the managers of fields of the first 500 objects, a line each, fields separated by tabs. Who only
# reads leaves no trace. "end" is last.
# shellcheck disable=SC2154 # server stands before this script
set -e
export KUBECONFIG=/etc/kubernetes/admin.conf KUBECACHEDIR="$PWD/cache"
get() { # PATH
    timeout -k 1 20 kubectl --server "$server" --request-timeout 15s get --raw "$1" 2>/dev/null
}
get /metrics >metrics
grep '^apiserver_requested_deprecated_apis{' metrics >apis || :
cat apis
# Labels are in the order of their names. No API of the core group has a version in which it goes.
sed -nE 's/.*[{]group="([^"]+)",removed_release="[^"]+",resource="([^"]+)",.*version="([^"]+)".*/\1 \2 \3/p' apis | sort -u | head -n 8 >gone
while read -r group resource version; do
    get "/apis/$group/$version/$resource?limit=500" >objects || continue
    { grep -oE "\"manager\":\"[^\"]*\",\"operation\":\"[A-Za-z]*\",\"apiVersion\":\"$group/$version\"" objects || :; } |
        cut -d '"' -f 4 | sort | uniq -c | sort -rn | head -n 5 | while read -r _ manager; do
        printf 'Manager\t%s of %s/%s\t%s\n' "$resource" "$group" "$version" "$manager"
    done
done <gone
echo end
