# Makes a backup of etcd, and keeps the newest $keep. Prints its path, its SHA-256, its size in bytes and its revision, separated
# by tabs. A backup that is there is whole: it is made aside, verified and then renamed. Old ones go after that.
# shellcheck disable=SC2154 # directory and keep stand before this script, and ctl and healthy, which ask the member of this host
set -eu
umask 077
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
[ -d "$directory" ] || mkdir -p "$directory"
exec 9>"$directory/.lock"
flock -w 600 9 || {
    echo "another backup has been running for 10 minutes" >&2
    exit 1
}
# What was left by one that was killed.
rm -f "$directory"/.new.db*
trap 'rm -f "$directory"/.new.db*' EXIT
# dash runs no EXIT trap when a signal ends it.
trap 'exit 143' HUP INT TERM
new=$directory/.new.db
# A member that is cut off from the others, or has just come, would give what it has: an old state, or none.
healthy
ctl snapshot save "$new" >/dev/null
revision=$(revision_of "$new")
sync "$new"
name=$directory/snapshot-$(date -u +%Y%m%dT%H%M%SZ).db
mv -f "$new" "$name"
# The time is their name. The new one stays whatever the clock says, and one of a time that has not come goes first.
find "$directory/" -maxdepth 1 -name 'snapshot-????????T??????Z.db' | sed 's|.*/||' | grep -vxF -e "${name##*/}" |
    KK_NOW=${name##*/} awk '{ print ($0 <= ENVIRON["KK_NOW"]) "\t" $0 }' | sort -r | cut -f 2 |
    tail -n "+$keep" | while IFS= read -r old; do rm -f "$directory/$old"; done
described "$name" "$revision"
