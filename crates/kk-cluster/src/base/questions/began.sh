# Prints when the running kubelet started; prints nothing if none runs. It starts few processes, because every run of kk asks
# every node.
set -e
state=$(systemctl show -p ActiveState -p ExecMainStartTimestampMonotonic kubelet.service)
case $state in *ActiveState=active*) ;; *) exit 0 ;; esac
since=${state#*ExecMainStartTimestampMonotonic=}
read -r up rest </proc/uptime
: "$rest"
ago=$((${up%%.*} - ${since%%[!0-9]*} / 1000000 + 3))
date -u -d "@$(($(date +%s) - ago))" +%Y-%m-%dT%H:%M:%SZ
