# The name of the newest backup; the time is its name. One of a time that has not come was made when the clock was ahead: its
# content may be old.
# shellcheck disable=SC2154 # directory stands before this script
[ ! -d "$directory" ] || find "$directory/" -maxdepth 1 -name 'snapshot-????????T??????Z.db' | sed 's|.*/||' |
    KK_NOW=snapshot-$(date -u +%Y%m%dT%H%M%SZ).db awk '$0 <= ENVIRON["KK_NOW"]' | sort | tail -n 1
