# Prints who holds the lock on this host, nothing when nobody does: whether a batch of it runs now, its age in seconds,
# its id and its name.
lock=/run/kubekey.lock
[ -s "$lock" ] || exit 0
command -v flock >/dev/null || exit 0
if flock -n -x "$lock" true; then echo idle; else echo busy; fi
echo $(($(date +%s) - $(stat -c %Y "$lock")))
sed -n '1p;3p' "$lock"
