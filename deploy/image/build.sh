#!/bin/bash
# build.sh BINARY FOLDER: builds the image of shell-operator, or of another program, into FOLDER/PROGRAM.tar without a container
# daemon. `make image` and `make image-ks` run it. The image has two layers: Debian with the tools for hooks, built by mmdebstrap
# and kept in FOLDER for the next build, and our own files. The same content gives the same bytes.
#
# The archive is an OCI layout that also contains Docker's manifest.json: `docker load`, `podman load`, `skopeo copy
# oci-archive:…` and `ctr images import` all accept it.
#
# Environment: IMAGE, its name and tag [shell-operator:latest]; PACKAGES, Debian packages in addition to bash, curl and jq
# [python3]; SUITE, Debian's code name [bookworm]; KUBECTL and KUBECTL_VERSION, see files.sh. For other programs: BASE, the first
# layer as a tar file; FILES, the script that adds their files; COMMAND, the default command of the image [start].
set -euo pipefail
shopt -s inherit_errexit
umask 022
script=$(realpath "$0")
binary=$(realpath "$1") && mkdir -p "$2" && folder=$(realpath "$2")
cd "$(dirname "$0")/../.."
program=$(basename "$binary")
image=${IMAGE:-$program:latest}
packages=${PACKAGES-python3}
suite=${SUITE:-bookworm}
export SOURCE_DATE_EPOCH=0 LC_ALL=C
layout=$(mktemp -d "$folder/unfinished.XXXXXX")
trap 'rm -rf "$layout"' EXIT
mkdir -p "$layout/blobs/sha256" "$layout/parts/files"

fail() { # message, hint
  printf 'error: %s\nhint: %s\n' "$1" "$2" >&2
  exit 1
}

# Debian as a tar file, without device nodes (the runtime creates them), documentation and settings of this machine. The hook
# directory excludes a package that needs a whole Perl (usrmerge).
make_base() { # FILE
  command -v mmdebstrap >/dev/null ||
    fail "mmdebstrap is missing" "apt-get install mmdebstrap, without root uidmap too; or use the Dockerfile"
  echo "building the Debian layer: $suite, bash ca-certificates curl jq $packages (kept in $folder)"
  if ! mmdebstrap --variant=apt --include="bash ca-certificates curl jq $packages" --skip=output/dev \
    --hook-dir=/usr/share/mmdebstrap/hooks/maybe-merged-usr \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
    --customize-hook='echo shell-operator:x:65532:65532::/tmp:/bin/bash >>"$1/etc/passwd"' \
    --customize-hook='echo shell-operator:x:65532: >>"$1/etc/group"' \
    --customize-hook='rm -rf "$1"/var/log/* "$1"/var/cache/* "$1"/etc/hostname "$1"/etc/resolv.conf' \
    "$suite" "$layout/parts/base.tar" >"$layout/parts/log" 2>&1; then
    tail -n 15 "$layout/parts/log" >&2
    fail "mmdebstrap cannot build Debian $suite" "its last words are above; it needs root or user namespaces, and a Debian mirror"
  fi
  rm -f "$folder"/base-*.tar
  mv "$layout/parts/base.tar" "$1"
}

# A binary that was linked on a newer system does not start on an older one.
check_glibc() { # BASE.TAR
  local needs has
  # A static one needs none.
  needs=$({ grep -aoE 'GLIBC_2\.[0-9]+' "$binary" || true; } | sed 's/GLIBC_//' | sort -uV | tail -n 1)
  has=$(tar -xOf "$1" ./var/lib/dpkg/status | awk '$1 == "Package:" { here = $2 == "libc6" } here && $1 == "Version:" { print $2 }')
  [ "$(printf '%s\n' "$needs" "$has" | sort -V | tail -n 1)" = "$has" ] ||
    fail "the binary needs glibc $needs, and Debian $suite has $has" "set SUITE to a newer Debian, or use the Dockerfile"
}

# Moves a file to the path of its digest and prints its descriptor.
add_blob() { # FILE, media type
  local sum
  sum=$(sha256sum <"$1" | cut -d ' ' -f 1)
  jq -nc --arg type "$2" --arg sum "$sum" --argjson size "$(stat -c %s "$1")" \
    '{mediaType: $type, digest: "sha256:\($sum)", size: $size}'
  mv "$1" "$layout/blobs/sha256/$sum"
}

# Adds a layer; prints its descriptor together with the digest of the uncompressed file.
add_layer() { # FILE.TAR
  local sum descriptor
  sum=$(sha256sum <"$1" | cut -d ' ' -f 1)
  gzip --no-name <"$1" >"$layout/parts/layer"
  descriptor=$(add_blob "$layout/parts/layer" application/vnd.oci.image.layer.v1.tar+gzip)
  jq -nc --argjson layer "$descriptor" --arg sum "$sum" '{layer: $layer, diff: "sha256:\($sum)"}'
}

write_tar() { # FILE, FOLDER, names…
  local file=$1 from=$2
  shift 2
  tar --create --file "$file" --format=gnu --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$from" "$@"
}

# The image's name as containerd knows it: a name without a registry is an image of Docker's registry.
whole_name() {
  local first=${image%%/*}
  if [ "$first" = "$image" ]; then
    echo "docker.io/library/$image"
  elif [[ $first == localhost || $first == *[.:]* ]]; then
    echo "$image"
  else
    echo "docker.io/$image"
  fi
}

write_config() { # layers
  jq -nc --argjson layers "$1" --arg arch "$(dpkg --print-architecture)" \
    --arg program "/$program" --arg command "${COMMAND:-start}" '{
    created: "1970-01-01T00:00:00Z",
    architecture: $arch,
    os: "linux",
    config: {
      User: "65532:65532",
      Env: [
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME=/tmp",
        "LOG_TYPE=json",
        "SHELL_OPERATOR_HOOKS_DIR=/hooks"
      ],
      Entrypoint: [$program],
      Cmd: [$command]
    },
    rootfs: {type: "layers", diff_ids: [$layers[].diff]}
  }' >"$layout/parts/config"
  add_blob "$layout/parts/config" application/vnd.oci.image.config.v1+json
}

[[ $image =~ ^[a-z0-9][a-zA-Z0-9._:/-]*:[a-zA-Z0-9._-]+$ ]] ||
  fail "IMAGE '$image' is no name with a tag" "like registry.example.com/shell-operator:1.0"
base=${BASE:-$folder/base-$(cat "$script" - <<<"$suite $packages" | sha256sum | cut -c -12).tar}
[ -e "$base" ] || make_base "$base"
check_glibc "$base"
bash "${FILES:-deploy/image/files.sh}" "$layout/parts/files" "$binary"
write_tar "$layout/parts/files.tar" "$layout/parts/files" .

layers=$({ add_layer "$base"; add_layer "$layout/parts/files.tar"; } | jq -sc .)
config=$(write_config "$layers")
jq -nc --argjson config "$config" --argjson layers "$layers" '{
  schemaVersion: 2,
  mediaType: "application/vnd.oci.image.manifest.v1+json",
  config: $config,
  layers: [$layers[].layer]
}' >"$layout/parts/manifest"
manifest=$(add_blob "$layout/parts/manifest" application/vnd.oci.image.manifest.v1+json)
jq -nc --argjson manifest "$manifest" --arg name "$(whole_name)" --arg tag "${image##*:}" '{
  schemaVersion: 2,
  mediaType: "application/vnd.oci.image.index.v1+json",
  manifests: [$manifest + {
    annotations: {"io.containerd.image.name": $name, "org.opencontainers.image.ref.name": $tag}
  }]
}' >"$layout/index.json"
echo '{"imageLayoutVersion":"1.0.0"}' >"$layout/oci-layout"
jq -nc --argjson config "$config" --argjson layers "$layers" --arg image "$image" '
  def path: "blobs/" + (.digest | sub(":"; "/"));
  [{Config: ($config | path), RepoTags: [$image], Layers: [$layers[].layer | path]}]' >"$layout/manifest.json"

archive=$folder/$program.tar
write_tar "$layout/parts/archive" "$layout" oci-layout index.json manifest.json blobs
mv "$layout/parts/archive" "$archive"
size() { numfmt --to=iec "$1"; }
echo "$image: $archive, $(size "$(stat -c %s "$archive")") ($(size "$(jq '.[1].layer.size' <<<"$layers")") above the first layer)"
