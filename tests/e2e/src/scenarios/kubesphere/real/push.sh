# Sends the images of the archive on standard input to REGISTRY, and prints their names there.
ctr="ctr --namespace pushed"
case $(uname -m) in aarch64) arch=arm64 ;; *) arch=amd64 ;; esac
# Hosts may only pull by their own files; these have the password, too.
hosts=$(mktemp -d)
trap 'rm -rf "$hosts"' EXIT
mkdir "$hosts/$REGISTRY"
sed 's/"resolve"]/"resolve", "push"]/' "/etc/containerd/certs.d/$REGISTRY/hosts.toml" >"$hosts/$REGISTRY/hosts.toml"
$ctr images import --platform "linux/$arch" - >/dev/null
for name in $($ctr images list --quiet | grep -v '^sha256:'); do
    # The names that the rewriting of the spec produces: without the registry, and without the implied namespace `library`.
    path=${name#*/}
    target="$REGISTRY/${path#library/}"
    $ctr images tag --force "$name" "$target" >/dev/null
    $ctr images push --hosts-dir "$hosts" --platform "linux/$arch" "$target" >/dev/null
    $ctr images remove "$name" "$target" >/dev/null
    echo "$target"
done
