# Queries the API through its endpoint about 10 times a second, as the administrator, until /tmp/asked-api.stop exists. Prints the
# number of queries, and the time without answers in milliseconds.
conf=/etc/kubernetes/admin.conf
field() { sed -n "s/^ *$1: *//p" $conf; }
umask 077
field client-certificate-data | base64 -d >/tmp/asking.crt
field client-key-data | base64 -d >/tmp/asking.key
url=$(field server)/api/v1/namespaces/default
rm -f /tmp/asked-api.stop
now() { date +%s%3N; }
asked=0 missed=0 since=''
while [ ! -e /tmp/asked-api.stop ]; do
    asked=$((asked + 1)) began=$(now)
    code=$(curl --silent --insecure --max-time 5 --cert /tmp/asking.crt --key /tmp/asking.key -o /dev/null -w '%{http_code}' "$url" || :)
    if [ "$code" = 200 ]; then
        [ -z "$since" ] || missed=$((missed + $(now) - since))
        since=''
    else
        echo "no answer at $(date +%T.%3N): $code"
        [ -n "$since" ] || since=$began
    fi
    sleep 0.1
done
[ -z "$since" ] || missed=$((missed + $(now) - since))
rm -f /tmp/asking.crt /tmp/asking.key
echo "asked $asked"
echo "missed $missed"
