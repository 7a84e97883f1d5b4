# Runs on the host, as root, before and around the caller's script. The caller's side is `opening.rs`, which sets these variables
# before this text: kk (a random word), size (bytes of the tar stream that follows on standard input), mode (run: the script's
# input is empty; stream: it gets the files that it requests), pty (1: one terminal for all streams), lost (the random words of
# calls whose connection broke).
#
# This text must not contain a backslash: it passes through `echo`, which may change a backslash.
#
# The script gets no variable of the login: a proxy, KUBECONFIG or ETCDCTL_ENDPOINTS would change which servers its binaries use.
# shellcheck disable=SC2154
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
HOME=~root
LC_ALL=C
export PATH HOME LC_ALL
umask 022
dir='' job='' watch=''

# Ends the remaining processes of the script's process group (TERM, then KILL) and removes the private directory. It must not be
# interrupted. It must end before sudo kills it, which is 2 s after a hang-up.
clean() {
  trap - 0
  trap '' HUP INT TERM PIPE
  [ -z "$watch" ] || kill "$watch" 2>/dev/null
  if [ -n "$job" ] && kill -s TERM -- "-$job" 2>/dev/null; then
    n=0
    while [ "$n" -lt 15 ] && kill -s 0 -- "-$job" 2>/dev/null; do
      sleep 0.1
      n=$((n + 1))
    done
    kill -s KILL -- "-$job" 2>/dev/null
  fi
  cd /
  [ -z "$dir" ] || rm -rf "$dir"
}
trap clean 0
trap 'exit 143' HUP INT TERM PIPE

# Reports that the host, not the connection, is to blame.
give_up() {
  echo "kk-$kk-failed" >&2
  exit 125
}

for program in env head mkdir rm setsid sleep tar; do
  command -v "$program" >/dev/null || { echo "kk-$kk-missing $program" >&2 && exit 125; }
done

# sshd may take hours to notice that a connection is lost, and until then its script continues. It must not run concurrently with
# its own repetition: the bootstrap of the repetition ends it, and then removes its directory.
for other in $lost; do
  for old in "/run/kk.$other" "/tmp/kk.$other"; do
    # Any user can create a directory or a FIFO of that name in /tmp.
    # shellcheck disable=SC3067 # dash and busybox have -O
    [ -O "$old" ] && [ ! -L "$old" ] && [ -f "$old/pid" ] || continue
    { read -r pid <"$old/pid" && kill -s TERM "$pid"; } 2>/dev/null || continue
    n=0
    while [ -d "$old" ]; do
      [ "$n" -lt 50 ] || { echo "process $pid of a lost connection does not end" >&2 && give_up; }
      sleep 0.1
      n=$((n + 1))
    done
  done
done

# Its name is random, and it must not exist yet.
if mkdir -m 700 "/run/kk.$kk" 2>/dev/null; then dir=/run/kk.$kk; else mkdir -m 700 "/tmp/kk.$kk" && dir=/tmp/kk.$kk || give_up; fi
echo "$$" >"$dir/pid"
head -c "$size" | tar -xmf - -C "$dir" && [ -f "$dir/script" ] || give_up
cd "$dir/files" || give_up
[ "$pty" = 0 ] || exec 2>"$dir/stderr"
echo "kk-$kk-begin"
echo "kk-$kk-begin" >&2

exec 3<&0
if [ "$mode" = stream ]; then
  setsid env -i PATH="$PATH" HOME="$HOME" LC_ALL=C sh ../script <&3 3<&- &
  job=$!
else
  setsid env -i PATH="$PATH" HOME="$HOME" LC_ALL=C sh ../script </dev/null 3<&- &
  job=$!
  # The dead man's switch: when the caller closes our input, or its connection dies, the script dies too.
  {
    head -c 1
    kill -s TERM -- "-$job"
    sleep 2
    kill -s KILL -- "-$job"
  } <&3 3<&- >/dev/null 2>&1 &
  watch=$!
fi
exec 3<&-
wait "$job" 2>/dev/null
code=$?

[ "$pty" = 0 ] || exec 4<"$dir/stderr"
clean
echo "kk-$kk-end $code"
if [ "$pty" = 0 ]; then
  echo "kk-$kk-end $code" >&2
else
  cat <&4
  echo "kk-$kk-end $code"
fi
