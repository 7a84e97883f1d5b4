# Looks every second, until it is ended. An API that does not answer is asked again; that it says nothing counts, too.
while :; do
    ! configuration >seen 2>/dev/null || cat seen
    echo end
    sleep 1
done
