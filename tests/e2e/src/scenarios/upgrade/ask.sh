# Queries the Service about 20 times a second until /tmp/asked.stop exists. Prints the number of queries, and when there was no
# answer.
# shellcheck disable=SC2154 # service is set before this script
rm -f /tmp/asked.stop
asked=0
while [ ! -e /tmp/asked.stop ]; do
    asked=$((asked + 1))
    answer=$(curl --silent --show-error --max-time 5 "http://$service/health" 2>&1)
    [ "$answer" = OK ] || echo "missed at $(date +%T): $answer"
    sleep 0.05
done
echo "asked $asked"
