# Whether the API server at $server is alive. The query requests no list, so that an API server under load answers it, too. If no
# API server runs, the connection is refused at once.
# shellcheck disable=SC2154 # server stands before this script
is_alive() {
    for _ in 1 2 3; do
        if timeout -k 1 15 kubectl --server "$server" --request-timeout 10s get --raw /livez >/dev/null 2>&1; then
            return 0
        fi
    done
    return 1
}
