# Prints the state every second, until the script is ended. If the API does not answer, it is queried again: a missing answer
# counts, too.
while :; do
    ! configuration >seen 2>/dev/null || cat seen
    echo end
    sleep 1
done
