# Creates a partial Debian archive with some packages and all their dependencies, signed as Debian signs it: in the directory of
# the first argument, of the release of the second, with the packages of the others. Nothing of this machine is changed.
directory=$1 release=$2
shift 2
uri=$(apt-get indextargets --format '$(ORIGIN) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
    sed -n 's/^Debian main //p' | grep '^http' | grep -v security | head -n 1)
work=$directory/.work
mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
: >"$work/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri $release main" >"$work/sources.list"
ask() {
    apt-get -q -y -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$work/lists" \
        -o Dir::State::status="$work/status" -o Dir::Cache="$work/cache" -o APT::Sandbox::User=root -o Acquire::Languages=none \
        -o APT::Install-Recommends=false -o Acquire::GzipIndexes=false "$@"
}
ask update >&2
# Downloaded unchanged: apt keeps its lists unpacked, but the signature is valid for the packed ones.
for list in InRelease "main/binary-$(dpkg --print-architecture)/Packages.xz"; do
    curl -fsSL --create-dirs -o "$directory/dists/$release/$list" "${uri%/}/dists/$release/$list"
done
# One query per package would call apt a hundred times. apt fetches them into its cache, and prints the path of each in the
# archive.
ask install --download-only "$@" >&2
ask install --simulate "$@" | sed -n 's/^Inst \([^ ]*\) (\([^ ]*\) .*/\1=\2/p' | xargs apt-cache \
    -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$work/lists" \
    -o Dir::State::status="$work/status" -o Dir::Cache="$work/cache" show --no-all-versions |
    awk '$1 == "Package:" { name = $2 } $1 == "Version:" { version = $2 } $1 == "Architecture:" { arch = $2 } $1 == "Filename:" { print name, version, arch, $2 }' |
    sort -u | while read -r name version arch path; do
    mkdir -p "$directory/${path%/*}"
    mv "$work/cache/archives/${name}_$(printf %s "$version" | sed 's/:/%3a/')_$arch.deb" "$directory/$path"
done
rm -rf "$work"
