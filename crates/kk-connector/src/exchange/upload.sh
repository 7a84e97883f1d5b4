# Receives files on standard input. The list `manifest` has two lines a file: "size sha256 mode" and its path. Says
# "want N" for each that is not there yet: for all of them at once, so that a file travels while the one before it is put
# in place. Where head reads further than it is told, as busybox's does, each is asked for when it can be read, so that
# nothing of the next one is there to be read. Before and after it run the scripts `before` and `after`, and this shell reads
# `lock` before both, where there are such; that may define what is done `at_end`. Needs the variable kk, 16 random letters.
# shellcheck disable=SC2154
tmp='' now='' watch=''
at_end() { :; }
trap '[ -z "$tmp" ] || rm -f -- "$tmp"; at_end' 0
trap 'exit 143' HUP INT TERM PIPE

fail() {
  echo "fail $now"
  echo "$1" >&2
  exit 1
}

# While a hook runs, nothing is sent and nothing else reads standard input: its end says that the caller or its connection
# is gone, and this process group must not go on. A read of the shell's own takes nothing with it when it is ended.
exec 3<&0
watch() {
  {
    read -r _
    trap '' TERM
    kill -s TERM -- "-$$"
    n=0
    while kill -s 0 "$$"; do
      [ "$n" -lt 20 ] || kill -s KILL -- "-$$"
      sleep 0.1
      n=$((n + 1))
    done
  } <&3 3<&- 8<&- >/dev/null 2>&1 &
  watch=$!
}

# SIGTERM may come while the process is still new and has the traps of this one.
unwatch() {
  kill -s KILL "$watch"
  wait "$watch" 2>/dev/null || :
}

# What a hook prints is for people: standard output is for the caller. What it starts, and stays, does not keep the lock.
hook() {
  [ -e "$1" ] || return 0
  watch
  sh -e "./$1" </dev/null >&2 3<&- 8<&- || exit 1
  unwatch
}

# Hashes standard input. openssl is four times as fast as sha256sum where the processor helps; the sum of nothing
# shows that it works.
case $(openssl dgst -sha256 -r </dev/null 2>/dev/null) in
  e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855*) hash() { openssl dgst -sha256 -r; } ;;
  *) hash() { sha256sum; } ;;
esac

there() {
  [ -f "$target" ] && [ ! -L "$target" ] || return 1
  [ "$(stat -c %s -- "$target")" = "$size" ] || return 1
  there=$(hash <"$target")
  [ "${there%% *}" = "$sum" ]
}

receive() {
  dir=${target%/*} name=${target##*/}
  mkdir -p -- "$dir/" || fail 'the directory cannot be made'
  # What a power cut left of an earlier attempt.
  rm -f -- "$dir"/.kk-????????????????-"$name"
  tmp=$dir/.kk-$kk-$name
  [ "$exact" = b ] || echo "want $now"
  (umask 077 && head -c "$size" >"$tmp")
  have=$(stat -c %s -- "$tmp") || fail 'the file cannot be made'
  [ "$have" = "$size" ] || fail "only $have of $size bytes could be written"
  # Read again, from memory: cheaper than a pipe to a second program while it arrives.
  got=$(hash <"$tmp")
  [ "${got%% *}" = "$sum" ] || fail "its SHA-256 is ${got%% *}, not $sum"
  chmod "$mode" -- "$tmp" && mv -fT -- "$tmp" "$target" || fail 'it cannot be put in place'
  tmp=''
}

if [ -e lock ]; then
  watch
  # shellcheck disable=SC1091
  . ./lock
  unwatch
fi
hook before
exact=$(printf ab | { head -c 1 >/dev/null; cat; })
now=0 missing=' '
while read -r size sum mode <&4 && IFS= read -r target <&4; do
  if there; then
    chown "$(id -u):$(id -g)" -- "$target" && chmod "$mode" -- "$target" || fail 'its owner and mode cannot be set'
  else
    missing="$missing$now "
    [ "$exact" != b ] || echo "want $now"
  fi
  now=$((now + 1))
done 4<manifest
now=0
while read -r size sum mode <&4 && IFS= read -r target <&4; do
  case $missing in *" $now "*) receive ;; esac
  now=$((now + 1))
done 4<manifest
hook after
