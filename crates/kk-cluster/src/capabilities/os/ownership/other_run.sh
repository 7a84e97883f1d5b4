# Prints the owner of the lock on this host, or nothing if nothing holds it: whether a batch of the owner is running, its age in
# seconds, its id and its name. If the clock was set back since, the age is the time by which the clock is behind.
lock=/run/kubekey.lock
[ -s "$lock" ] || exit 0
command -v flock >/dev/null || exit 0
if flock -n -x "$lock" true; then echo idle; else echo busy; fi
age=$(($(date +%s) - $(stat -c %Y "$lock")))
echo ${age#-}
sed -n '1p;3p' "$lock"
