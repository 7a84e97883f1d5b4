# Prints who holds the lock on this host, nothing when nobody does: whether a batch of it runs now, its age in seconds,
# its id and its name. The clock may have been set back since: then it is as old as the clock is behind.
lock=/run/kubekey.lock
[ -s "$lock" ] || exit 0
command -v flock >/dev/null || exit 0
if flock -n -x "$lock" true; then echo idle; else echo busy; fi
age=$(($(date +%s) - $(stat -c %Y "$lock")))
echo ${age#-}
sed -n '1p;3p' "$lock"
