# Whether sudo lets $user run everything as root without a password. Of the rules for all commands the last one counts.
# shellcheck disable=SC2154 # user stands before this script
may_become_root() {
    LC_ALL=C sudo -n -l -U "$user" 2>/dev/null | awk '
        /^ +\((ALL|root)[^)]*\)/ && /[ :]ALL$/ { free = /NOPASSWD: ([A-Z_]+: )*ALL$/ }
        END { exit !free }'
}
