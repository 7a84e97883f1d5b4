# Queries an API server by the name of the API about ten times a second, until /tmp/asked-name.stop exists. Each query has its own
# connection, and etcd is not needed for the answer. Prints the number of queries and the longest time between two answers in
# milliseconds.
rm -f /tmp/asked-name.stop
now() { date +%s%3N; }
asked=0 longest=0 last=$(now)
while [ ! -e /tmp/asked-name.stop ]; do
    asked=$((asked + 1))
    if curl --silent --fail --max-time 5 --cacert /etc/kubernetes/pki/ca.crt -o /dev/null https://lb.kubesphere.local:6443/version; then
        gap=$(($(now) - last))
        [ $gap -le $longest ] || longest=$gap
        last=$(now)
    else
        echo "no answer at $(date +%T.%3N)"
    fi
    sleep 0.1
done
gap=$(($(now) - last))
[ $gap -le $longest ] || longest=$gap
echo "asked $asked"
echo "longest $longest"
