# Prints what apt would do to install the packages in the arguments, by the list in the directory of this script. First it
# configures packages that a killed run left unpacked.
# shellcheck disable=SC2154 # unfinished stands before this script
[ -z "$unfinished" ] || DEBIAN_FRONTEND=noninteractive dpkg --configure -a >/dev/null
own_apt "$PWD" update >said 2>&1 || {
    tail -n 5 said >&2
    exit 1
}
own_apt "$PWD" --simulate install "$@"
