# Queries the API through its endpoint, as the administrator, with the current kubeconfig, and verifies the server's certificate.
# Ends when /tmp/asking.stop exists. Like other clients, repeats a request once if the network refuses it while an API server
# ends.
rm -f /tmp/asking.stop
export KUBECONFIG=/etc/kubernetes/admin.conf
ask() { kubectl --request-timeout 10s get --raw /api/v1/namespaces/default >/tmp/asking.out 2>&1; }
asked=0 refused=0
while [ ! -e /tmp/asking.stop ]; do
    asked=$((asked + 1))
    if ! ask; then
        echo "$(date +%T.%3N) first: $(tail -n 1 /tmp/asking.out)"
        sleep 0.5
        if ! ask; then
            refused=$((refused + 1))
            echo "$(date +%T.%3N) $(tail -n 1 /tmp/asking.out)"
        fi
    fi
    sleep 0.2
done
echo "$asked asked, $refused refused"
