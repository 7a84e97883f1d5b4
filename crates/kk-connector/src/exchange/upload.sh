# Receives files on standard input. The list `manifest` has two lines per file: "size sha256 mode" and its path. Prints "want N"
# for each file that is missing. All requests are sent at once, so that a file is transferred while the previous one is put in
# place. If head reads beyond its limit, as busybox's does, each file is requested only when it can be read, so that head finds no
# bytes of the next file. The scripts `before` and `after` run before and after the transfer, if they exist. Before both, this
# shell sources `lock`, if it exists; `lock` may define the function `at_end`. Needs the variable kk, 16 random letters.
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

# While a hook runs, no file is sent and no other process reads standard input. Its end means that the caller or its connection is
# gone, so this process group must end. A builtin `read` that is killed has consumed no input.
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

# SIGTERM may arrive while the process is still new and has the traps of this one.
unwatch() {
  kill -s KILL "$watch"
  wait "$watch" 2>/dev/null || :
}

# Output of a hook is for people: standard output is for the caller. A process that a hook leaves running does not keep the lock.
hook() {
  [ -e "$1" ] || return 0
  watch
  sh -e "./$1" </dev/null >&2 3<&- 8<&- || exit 1
  unwatch
}

# Hashes standard input. openssl is four times as fast as sha256sum if the processor supports it; the checksum of empty input
# shows that openssl works.
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
  # Leftover of an earlier attempt that a power cut ended.
  rm -f -- "$dir"/.kk-????????????????-"$name"
  tmp=$dir/.kk-$kk-$name
  [ "$exact" = b ] || echo "want $now"
  (umask 077 && head -c "$size" >"$tmp")
  have=$(stat -c %s -- "$tmp") || fail 'the file cannot be made'
  [ "$have" = "$size" ] || fail "only $have of $size bytes could be written"
  # Read again, from memory: this is cheaper than a pipe to a second process during the transfer.
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
