# After a boot the API takes the containers of before for ready until the kubelet has reported on their pods: prints "no" as long as
# it does so. Asks the API only for a kubelet that the boot has started, and only in its first two minutes.
# shellcheck disable=SC2154 # pods_known, a script, stands before this script
set -e
state=$(systemctl show -p ActiveState -p ExecMainStartTimestampMonotonic kubelet.service)
# Without one that runs nothing is reported.
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
# 0 while the boot goes on.
booted=${boot#*=}
if [ "$booted" -gt 0 ] && [ "$began" -gt "$booted" ] || sh -euc "$pods_known" >&2; then
    echo yes
else
    echo no
fi
