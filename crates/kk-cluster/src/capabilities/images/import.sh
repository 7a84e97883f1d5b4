# Imports the image layout of this directory and of $directory into the runtime. The arguments are the images in it, each with its
# ID.
# shellcheck disable=SC2154
tar -cf - oci-layout index.json -C "$directory" blobs | runtime_import - >said 2>&1 || {
    tail -n 5 said >&2
    exit 1
}
# The runtime lists its new images a moment later. Until then, the kubelet would pull from a registry, or use the previous image
# of that name.
while [ $# -gt 0 ]; do
    tries=0
    until crictl inspecti -q "$1" 2>/dev/null | grep -qF "\"$2\""; do
        tries=$((tries + 1))
        if [ $tries -gt 150 ]; then
            echo "the runtime does not list $1 after its import" >&2
            exit 1
        fi
        sleep 0.2
    done
    shift 2
done
rm -rf -- "$directory"
