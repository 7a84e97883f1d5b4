# Prints the head of the member's log on the disk in hexadecimal, which contains the member and its cluster. Prints nothing if
# there is no log.
# shellcheck disable=SC2154 # data stands before this script
for log in "$data"/member/wal/*.wal; do
    [ ! -e "$log" ] || head -c 160 "$log" | od -An -v -tx1
    break
done
