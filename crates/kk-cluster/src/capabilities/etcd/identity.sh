# The head of the member's log on the disk, in hexadecimal: it names the member and its cluster. Nothing where there is no log.
# shellcheck disable=SC2154 # data stands before this script
for log in "$data"/member/wal/*.wal; do
    [ ! -e "$log" ] || head -c 160 "$log" | od -An -v -tx1
    break
done
