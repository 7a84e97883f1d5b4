# Virtual servers stay in the kernel when kube-proxy ends, and so do its modules and their settings. The binary of kube-proxy
# removes them, even if ipvsadm is not installed. It removes all virtual servers, so it is used only if kube-proxy has created its
# link, and all servers are at addresses of that link or at ports of the range for nodes. The kubelet is stopped, so processes
# that end here do not start again.
servers() { awk '$1 ~ /^(TCP|UDP|SCTP|FWM)$/ { print $1, $2 }' /proc/net/ip_vs 2>/dev/null; }
# Prints the addresses in hexadecimal, as the kernel writes them.
own_addresses() {
    ip -4 -o address show dev kube-ipvs0 | awk '{
        sub("/.*", "", $4); split($4, part, ".")
        printf "%02X%02X%02X%02X\n", part[1], part[2], part[3], part[4]
    }'
    # A kernel without IPv6 has no such file.
    awk '$6 == "kube-ipvs0" { print toupper($1) }' /proc/net/if_inet6 2>/dev/null || :
}
# Whether there are virtual servers, and all of them are kube-proxy's. If this is not known, they are not.
all_are_own() {
    ip link show kube-ipvs0 >/dev/null 2>&1 && own_addresses >own && servers >listed && [ -s listed ] || return 1
    foreign=$(awk '
        FILENAME == "own" { own[$1]; next }
        $1 == "FWM" { print; next }
        {
            port = $2; sub(".*:", "", port)
            address = toupper($2); sub(":[^:]*$", "", address); gsub("[]:[]", "", address)
            if (!(address in own) && !(length(port) == 4 && port >= "7530" && port <= "7FFF")) print
        }' own listed) && [ -z "$foreign" ]
}
# Prints the processes of kube-proxy. There may be two while a pod is replaced.
processes() {
    for container in $containers; do
        timeout 10 crictl inspect -o go-template --template '{{.info.pid}}{{"\n"}}' "$container" 2>/dev/null | grep -xE '[1-9][0-9]*' || :
    done
}
# A signal takes effect when the process runs again, which may be later on a busy host.
are_stopped() {
    for pid in $pids; do
        case $(sed 's/.*) //; s/ .*//' "/proc/$pid/stat" 2>/dev/null) in
        T | "") ;;
        *) return 1 ;;
        esac
    done
}
if all_are_own && command -v crictl >/dev/null; then
    containers=$(timeout 10 crictl ps -q --state running --label io.kubernetes.container.name=kube-proxy 2>/dev/null) || :
    pids=$(processes)
    if [ -n "$pids" ]; then
        # While the processes run, they create the virtual servers again. They must not stay stopped: this shell has to kill them
        # when a signal ends it, so it must not wait in the foreground.
        # shellcheck disable=SC2086 # numbers
        (
            cleaning=
            trap 'kill $cleaning 2>/dev/null || :; kill -KILL $pids 2>/dev/null || :' EXIT
            trap 'exit 143' HUP INT TERM
            kill -STOP $pids
            tries=50
            until are_stopped || [ $((tries -= 1)) -le 0 ]; do sleep 0.1; done
            timeout 60 crictl exec "${containers%%[!0-9a-zA-Z]*}" /usr/local/bin/kube-proxy --cleanup >cleanup 2>&1 &
            cleaning=$!
            code=0
            wait "$cleaning" || code=$?
            [ "$code" != 124 ] || echo "it did not end within 60 s" >>cleanup
        ) || :
        if [ -n "$(servers)" ]; then
            kk_note "kube-proxy did not remove its virtual servers of IPVS: $(tail -n 1 cleanup)"
        fi
    fi
fi
