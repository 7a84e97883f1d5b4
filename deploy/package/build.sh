#!/bin/bash
# build.sh DIRECTORY: builds the packages of kk into DIRECTORY, as `make package` does: .deb, .tar.gz, SBOM and SHA256SUMS.
#
# The binary is linked by zig against glibc 2.17 (CentOS 7), with OpenSSL and zlib inside. It therefore starts on distributions that
# are older than the build machine. The same commit gives the same bytes.
#
# Environment: ARCH, amd64 or arm64 [amd64; arm64 needs `rustup target add aarch64-unknown-linux-gnu`]; MINISIGN_KEY, a secret
# key file, signs SHA256SUMS.
set -euo pipefail
shopt -s inherit_errexit
umask 022
mkdir -p "$1" && folder=$(realpath "$1")
cd "$(dirname "$0")/../.."
arch=${ARCH:-amd64}
glibc=2.17
zig=0.17.1 zig_sum=ea6cc5d87b033cf0aedfbc8f9549a908cae6c50ac31f1698188fa48a74524b54
zigbuild=0.24.1 zigbuild_sum=238a1ab54a95053a4eadc34775c81f795a8ad75f80bfed63f3f445f518102375
tools=${XDG_CACHE_HOME:-$HOME/.cache}/kk-ci/zig-$zig-$zigbuild

fail() { # message, hint
  printf 'error: %s\nhint: %s\n' "$1" "$2" >&2
  exit 1
}

case $arch in
amd64) target=x86_64-unknown-linux-gnu loader=ld-linux-x86-64.so.2 ;;
arm64) target=aarch64-unknown-linux-gnu loader=ld-linux-aarch64.so.1 ;;
*) fail "ARCH is $arch" "use amd64 or arm64" ;;
esac
# Without rustup, there is no list of installed targets.
if command -v rustup >/dev/null && ! rustup target list --installed | grep -qx "$target"; then
  fail "Rust has no standard library for $target" "rustup target add $target"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ ! -d "$tools" ]; then
  [ "$(uname -m)" = x86_64 ] || fail "the pinned zig is for x86_64" "build the packages on an x86_64 machine"
  if ! python3 -m pip --version >/dev/null 2>&1; then
    apt-get -o DPkg::Lock::Timeout=300 update -q
    DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -q -y --no-install-recommends python3-pip
  fi
  printf '%s\n' "ziglang==$zig --hash=sha256:$zig_sum" "cargo-zigbuild==$zigbuild --hash=sha256:$zigbuild_sum" >"$work/tools"
  python3 -m pip install --quiet --root-user-action=ignore --no-deps --require-hashes --only-binary :all: \
    --target "$work/python" -r "$work/tools"
  mkdir -p "${tools%/*}"
  mv "$work/python" "$tools"
fi
export PYTHONPATH=$tools PATH=$tools/bin:$PATH

export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
[ -z "$(git status --porcelain --untracked-files=no)" ] || echo "warning: the packages contain changes that are not committed" >&2
version=$(sed -n '/^\[workspace.package\]/,/^\[/ s/^version = "\(.*\)"/\1/p' Cargo.toml)

# Paths of this machine would make the bytes depend on it.
built=$(realpath -m "${CARGO_TARGET_DIR:-target}")
cargo_home=$(realpath -m "${CARGO_HOME:-$HOME/.cargo}")
export LIBZ_SYS_STATIC=1
export RUSTFLAGS="--remap-path-prefix=$PWD=/kk --remap-path-prefix=$built=/target --remap-path-prefix=$cargo_home=/cargo"
export CFLAGS="-ffile-prefix-map=$built=/target -ffile-prefix-map=$cargo_home=/cargo"
cargo zigbuild --locked --release -p kk --features portable --target "$target.$glibc" --bin kk
binary=$built/$target/release/kk

# The newest version of glibc whose symbols the binary needs, and the libraries that it loads.
needs=$(objdump -T "$binary" | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1)
[ "$(printf '%s\n' "$needs" "GLIBC_$glibc" | sort -V | tail -n 1)" = "GLIBC_$glibc" ] ||
  fail "the binary needs $needs" "find the symbols: objdump -T $binary | grep $needs"
other=$(objdump -p "$binary" | awk '$1 == "NEEDED" { print $2 }' |
  grep -vxE "lib(c|m|dl|rt|pthread|util)\.so\.[0-9]+|$loader" || true)
[ -z "$other" ] || fail "the binary needs libraries that not each machine has: $other" "link them statically"

# Pages and completions are the same for each architecture. If the binary is for another one, a build for this machine writes them.
native() {
  if "$binary" version >/dev/null 2>&1; then
    "$binary" "$@"
  else
    env -u RUSTFLAGS -u CFLAGS -u LIBZ_SYS_STATIC cargo run --quiet --locked -p kk --bin kk -- "$@"
  fi
}
pages=$work/man completions=$work/completions
mkdir "$pages" "$completions"
native man-pages "$pages"
for shell in bash zsh fish; do
  native completion "$shell" >"$completions/kk.$shell"
done
python3 deploy/package/sbom.py "$target" >"$work/sbom"

normalize() { find "$1" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +; }

name=kk-$version-linux-$arch
archive=$work/$name
mkdir -p "$archive"
install -m 755 "$binary" "$archive/kk"
cp -r README.md CHANGELOG.md LICENSE SECURITY.md docs config-samples "$archive/"
cp -r "$pages" "$completions" "$archive/"
normalize "$archive"
tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --format=gnu -cf - "$name" | gzip -9 -n >"$work/$name.tar.gz"

root=$work/deb doc=$work/deb/usr/share/doc/kk
install -D -m 755 "$binary" "$root/usr/bin/kk"
for page in "$pages"/*; do
  mkdir -p "$root/usr/share/man/man1"
  gzip -9 -n -c "$page" >"$root/usr/share/man/man1/${page##*/}.gz"
done
install -D -m 644 "$completions/kk.bash" "$root/usr/share/bash-completion/completions/kk"
install -D -m 644 "$completions/kk.zsh" "$root/usr/share/zsh/vendor-completions/_kk"
install -D -m 644 "$completions/kk.fish" "$root/usr/share/fish/vendor_completions.d/kk.fish"
mkdir -p "$doc"
cp -r README.md SECURITY.md docs config-samples "$doc/"
install -m 644 LICENSE "$doc/copyright"
gzip -9 -n -c CHANGELOG.md >"$doc/changelog.gz"
mkdir "$root/DEBIAN"
cat >"$root/DEBIAN/control" <<END
Package: kk
Version: $version
Architecture: $arch
Maintainer: The developers of kk
Section: admin
Priority: optional
Depends: libc6 (>= $glibc)
Installed-Size: $(du -s --apparent-size -k "$root/usr" | cut -f 1)
Description: installs, upgrades and removes Kubernetes clusters over SSH
 kk turns Linux machines into a Kubernetes cluster as one file describes it, shows the
 changes before it makes them, repairs differences, and removes the cluster again.
END
normalize "$root"
dpkg-deb --root-owner-group -Zxz --build "$root" "$work/kk_${version}_$arch.deb" >/dev/null

cp "$work/sbom" "$work/$name.spdx.json"
assets=("$name.tar.gz" "kk_${version}_$arch.deb" "$name.spdx.json")
for asset in "${assets[@]}"; do mv "$work/$asset" "$folder/"; done
cd "$folder"
# The packages of another architecture may be there.
sha256sum -- kk-"$version"-linux-* kk_"$version"_* >"$work/SHA256SUMS"
mv "$work/SHA256SUMS" SHA256SUMS
[ -z "${MINISIGN_KEY:-}" ] || minisign -S -s "$MINISIGN_KEY" -m SHA256SUMS -t "kk $version"
ls -l "${assets[@]}" SHA256SUMS
echo "$folder: kk $version for $arch; needs $needs or newer, and no library except glibc"
