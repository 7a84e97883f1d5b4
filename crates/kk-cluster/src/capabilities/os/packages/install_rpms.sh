# Installs packages from $repository by the lists in the directory of this script, and removes the repository. $wanted contains
# the requested packages, or nothing if a killed run is being finished; the arguments are all new packages.
# shellcheck disable=SC2154
for list in *.xml*; do
    kk_own "$repository/repodata/$list"
    mv -- "$list" "$repository/repodata/$list"
done
[ $# = 0 ] || kk_record "rpms$KK_TAB$*"
# shellcheck disable=SC2086 # names of packages
own_dnf "$repository" --assumeyes install ${wanted:-$*} >said 2>&1 || {
    tail -n 15 said >&2
    exit 1
}
rm -rf -- "$repository"
