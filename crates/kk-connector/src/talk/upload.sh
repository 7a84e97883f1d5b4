# Receives files on standard input. The list `manifest` has two lines a file: "size sha256 mode" and its path.
# Says "want N" for each file that is not there yet and "go"; then reads the contents of these, one after the other.
# Needs the variable kk, a random word.
tmp='' now=''
trap '[ -z "$tmp" ] || rm -f -- "$tmp"' 0
trap 'exit 143' HUP INT TERM PIPE

fail() {
  echo "fail $now"
  echo "$1" >&2
  exit 1
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
  dir=${target%/*}
  mkdir -p -- "$dir/" || fail 'the directory cannot be made'
  tmp=$dir/.kk-$kk-${target##*/}
  # tee goes on reading when the disk is full, so that the stream stays in step; the file is then short.
  got=$(head -c "$size" | (umask 077 && tee -- "$tmp") | hash)
  have=$(stat -c %s -- "$tmp") || fail 'the file cannot be made'
  [ "$have" = "$size" ] || fail "only $have of $size bytes could be written"
  [ "${got%% *}" = "$sum" ] || fail "its SHA-256 is ${got%% *}, not $sum"
  chmod "$mode" -- "$tmp" && mv -fT -- "$tmp" "$target" || fail 'it cannot be put in place'
  tmp=''
}

wanted=' '
n=0
exec 4<manifest
while read -r size sum mode <&4 && IFS= read -r target <&4; do
  now=$n
  if there; then
    chown "$(id -u):$(id -g)" -- "$target" && chmod "$mode" -- "$target" || fail 'its owner and mode cannot be set'
  else
    wanted="$wanted$n "
    echo "want $n"
  fi
  n=$((n + 1))
done
echo go

n=0
exec 4<manifest
while read -r size sum mode <&4 && IFS= read -r target <&4; do
  now=$n
  case $wanted in *" $n "*) receive ;; esac
  n=$((n + 1))
done
