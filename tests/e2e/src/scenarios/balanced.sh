# A load balancer for API servers. It forwards each connection to the next server that reports to be ready.
# shellcheck disable=SC2154 # port and servers are set before this script
cat >/tmp/balance-one <<'EOF'
#!/bin/sh
# A first server by chance, then those after it.
set -- $SERVERS
shift=$(($$ % $#))
while [ $shift -gt 0 ]; do
    first=$1
    shift
    set -- "$@" "$first"
    shift=$((shift - 1))
done
for server in "$@"; do
    [ "$(curl --silent --insecure --max-time 1 "https://$server:6443/readyz")" = ok ] || continue
    exec socat - "TCP:$server:6443,connect-timeout=1"
done
exit 1
EOF
chmod +x /tmp/balance-one
export SERVERS="$servers"
exec socat TCP-LISTEN:"$port",reuseaddr,fork,backlog=128 EXEC:/tmp/balance-one
