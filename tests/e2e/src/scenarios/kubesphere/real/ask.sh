# Sends a request to ks-apiserver as the account admin, with the variables METHOD, WHERE and optionally WHAT. Password and token
# stay in pipes.
kubectl="kubectl --kubeconfig /etc/kubernetes/admin.conf --request-timeout 10s -n kubesphere-system"
address=$($kubectl get service ks-apiserver -o "jsonpath={.spec.clusterIP}")
token=$($kubectl get secret kubesphere-secret -o "jsonpath={.data.initAdminPassword}" | base64 -d |
    curl -sS --fail --max-time 30 --data grant_type=password --data username=admin --data-urlencode password@- \
        --data client_id=kubesphere --data client_secret=kubesphere "http://$address/oauth/token" |
    sed -n 's/.*"access_token": *"\([^"]*\)".*/\1/p')
[ -n "$token" ] || { echo "ks-apiserver gives admin no token" >&2; exit 1; }
printf 'Authorization: Bearer %s\n' "$token" | curl -sS --fail --max-time 30 -X "$METHOD" -H @- \
    -H 'Content-Type: application/json' ${WHAT:+--data "$WHAT"} "http://$address$WHERE"
