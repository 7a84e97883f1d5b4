# Queries the API servers again and again until /tmp/asked.stop exists. Prints how many were unavailable at once at most.
# shellcheck disable=SC2154 # servers is set before this script
rm -f /tmp/asked.stop
most=0 asked=0
while [ ! -e /tmp/asked.stop ]; do
    away=0
    for server in $servers; do
        answer=$(curl --silent --insecure --max-time 2 "https://$server:6443/readyz" 2>&1 || :)
        [ "$answer" = ok ] || away=$((away + 1))
    done
    [ $away -le $most ] || most=$away
    asked=$((asked + 1))
    sleep 0.2
done
echo "asked $asked"
echo "most away $most"
