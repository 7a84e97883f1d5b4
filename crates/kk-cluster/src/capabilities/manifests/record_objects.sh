# Records the objects of each manifest in $names as the API returns them. An object that is edited or deleted later differs from
# the note.
# shellcheck disable=SC2154 # names, notes and version stand before this script
kubectl get --ignore-not-found -f objects.yaml -o go-template="{{range .items}}$version{{\"\\n\"}}{{end}}" >all
LC_ALL=C sort all >now
for name in $names; do
    awk -F '\t' 'NR == FNR { of[$0]; next } $1 in of' "$name.keys" now >"$name.objects"
    kk_put "$name.objects" "$notes/$name.objects" 600 root:root
done
