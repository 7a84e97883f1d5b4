# Operations of containerd that CRI does not have. Kubernetes uses the containerd namespace k8s.io.
runtime_runs() { [ -S /run/containerd/containerd.sock ]; }

# $1: an archive, or - for standard input.
runtime_import() { ctr -n k8s.io images import "$1"; }

# Gives the image $1 the name $2, too.
runtime_tag() { ctr -n k8s.io images tag --force "$1" "$2"; }

# Prints the digest of the image $1; nothing if the image does not exist.
runtime_digest() { ctr -n k8s.io images ls "name==$1" | awk 'NR > 1 { print $3 }'; }

# Runs a container once. $1: its image, $2: its name, then the command and its arguments. An earlier run may have left a container
# of this name.
runtime_run() {
    ctr -n k8s.io tasks rm -f "$2" >/dev/null 2>&1 || :
    ctr -n k8s.io containers rm "$2" >/dev/null 2>&1 || :
    timeout -k 5 120 ctr -n k8s.io run --rm "$@"
}
