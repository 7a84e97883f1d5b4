# Prints the name of the newest backup; the name contains the time. A backup with a time in the future was made while the clock
# was ahead: its content may be old.
# shellcheck disable=SC2154 # directory stands before this script
[ ! -d "$directory" ] || find "$directory/" -maxdepth 1 -name 'snapshot-????????T??????Z.db' | sed 's|.*/||' |
    KK_NOW=snapshot-$(date -u +%Y%m%dT%H%M%SZ).db awk '$0 <= ENVIRON["KK_NOW"]' | sort | tail -n 1
