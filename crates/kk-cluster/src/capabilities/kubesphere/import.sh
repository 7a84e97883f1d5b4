# Imports an archive into the runtime, and waits until the runtime lists the image: until then, the kubelet would pull from a
# registry.
# shellcheck disable=SC2154 # name, image and archive stand before this script
runtime_import "$archive" >said 2>&1 || {
    tail -n 5 said >&2
    exit 1
}
runtime_tag "$name" "$image" >/dev/null
rm -f -- "$archive"
tries=0
until crictl inspecti -q "$image" >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ $tries -le 150 ] || kk_fail "the runtime does not list $image after its import"
    sleep 0.2
done
