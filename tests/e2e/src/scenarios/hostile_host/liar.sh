# The forced command of an SSH key: it stands between sshd and the scripts of kk. $1 names the lie.
# The command line of a call contains the random word by which kk finds the beginning and the end of the script's output.
word=$(printf '%s' "$SSH_ORIGINAL_COMMAND" | grep -o 'kk-[0-9a-f]\{16\}' | head -n 1)

both() {
  echo "$word-$1"
  echo "$word-$1" >&2
}

case $1 in
  noise)
    head -c 100000 /dev/urandom
    ;;
  greeting-without-end)
    exec yes "$(printf '\033]0;owned\007')"
    ;;
  answer-without-end)
    both begin
    exec yes
    ;;
  wrong-frames)
    both begin
    printf '\n@0123456789abcdef begun\n-1\n@ files\n@%s ended\n99999999999999999999\n' "$word"
    both 'end 0'
    ;;
  code-without-end)
    both begin
    echo "$word-end 0" >&2
    printf '%s-end ' "$word"
    exec tr '\000' 1 </dev/zero
    ;;
  escapes)
    both begin
    # Erase the screen, set its title, a control character of 8 bits, text from right to left.
    printf '\033[2J\033]0;owned\007\302\2332J\342\200\256txt\n' >&2
    both 'end 3'
    ;;
  no-beginning)
    exec sleep 900
    ;;
  no-end)
    # kk cannot end it.
    trap '' HUP INT TERM PIPE
    both begin
    exec sleep 900
    ;;
  requests-without-end)
    # Only uploads are lied about: their mode is in the third line of the input.
    read -r first
    read -r second
    read -r settings
    case $settings in
      *' mode=stream '*)
        both begin
        exec yes 'want 0'
        ;;
      *)
        {
          printf '%s\n' "$first" "$second" "$settings"
          exec cat
        } | sh -c "$SSH_ORIGINAL_COMMAND"
        ;;
    esac
    ;;
esac
