# The name of the newest backup; the time is its name.
# shellcheck disable=SC2154 # directory stands before this script
[ ! -d "$directory" ] || find "$directory/" -maxdepth 1 -name 'snapshot-????????T??????Z.db' | sed 's|.*/||' | sort | tail -n 1
