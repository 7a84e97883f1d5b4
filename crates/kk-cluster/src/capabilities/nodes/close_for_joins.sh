# Removes the bootstrap tokens with this description (in Base64), both of this run and of runs that were killed.
# shellcheck disable=SC2154 # description stands before this script
kubectl -n kube-system get secrets --field-selector type=bootstrap.kubernetes.io/token \
    -o jsonpath='{range .items[*]}{.metadata.name} {.data.description}{"\n"}{end}' >tokens
while read -r name text; do
    [ "$text" != "$description" ] || kubectl -n kube-system delete secret "$name" --ignore-not-found >/dev/null
done <tokens
