# Installs packages from $repository by the list in the directory of this script, and removes the repository. $wanted contains the
# requested packages; the arguments are all new packages, in the order in which they are configured.
# shellcheck disable=SC2154
kk_own "$repository/Packages"
mv Packages "$repository/Packages"
for package in "$@"; do
    was=absent
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" != config-files ] || was=config-files
    # A killed run has already recorded the state from before that run.
    kk_recorded "package$KK_TAB$package" || kk_record "package$KK_TAB$package$KK_TAB$was"
done
# shellcheck disable=SC2086 # names of packages
{ own_apt "$repository" update && own_apt "$repository" install $wanted; } >said 2>&1 </dev/null || {
    tail -n 15 said >&2
    exit 1
}
rm -rf -- "$repository"
