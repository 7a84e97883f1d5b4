# After a boot, the API reports containers from before the boot as ready until the kubelet has reported on their pods. Prints "no"
# during that time. Queries the API only if the boot started the kubelet, and only in the kubelet's first two minutes.
# shellcheck disable=SC2154 # pods_known, a script, stands before this script
set -e
state=$(systemctl show -p ActiveState -p ExecMainStartTimestampMonotonic kubelet.service)
# Without a running kubelet, nothing is reported.
case $state in
*ActiveState=active*) ;;
*)
    echo yes
    exit
    ;;
esac
read -r up rest </proc/uptime
: "$rest"
began=${state#*ExecMainStartTimestampMonotonic=}
began=${began%%[!0-9]*}
if [ $((${up%%.*} - began / 1000000)) -gt 120 ]; then
    echo yes
    exit
fi
boot=$(systemctl show -p FinishTimestampMonotonic)
# FinishTimestampMonotonic is 0 until the boot has finished.
booted=${boot#*=}
if [ "$booted" -gt 0 ] && [ "$began" -gt "$booted" ] || sh -euc "$pods_known" >&2; then
    echo yes
else
    echo no
fi
