# Keeps two control machines from working on one host at a time. Part of a batch's driver, which sets before it:
#   KK_OWNER  the same for runs that may continue each other
#   KK_RUN    this run
#   KK_NAME   the owner for people
#   KK_IDLE   an owner that has no batch here and had none for so many seconds has lost the host
# /run/kubekey.lock holds owner, run and name, a line each, and a line "pid N RUN" for the bootstrap of each batch; its time
# is when the last batch began or ended. A batch, or an upload, holds a shared flock on it while it runs.
# /run/kubekey.lost holds the runs that lost the host to another owner: each line is the run and the name of the new owner.
# shellcheck disable=SC2153
KK_ROOT=${KK_ROOT-}
KK_LOCK=$KK_ROOT/run/kubekey.lock
KK_LOST=$KK_ROOT/run/kubekey.lost

kk_read_lock() {
    kk_owner='' kk_run='' kk_name=''
    { IFS= read -r kk_owner && IFS= read -r kk_run && IFS= read -r kk_name; } <"$KK_LOCK" || :
}

# Batches of an earlier run of the same owner: their connection is gone, and nobody reads what they say. Another batch of
# this run may have taken the lock since it was read, so each line says whose it is.
kk_end_orphans() {
    for kk_file in "$KK_ROOT"/run/kk.*/pid "$KK_ROOT"/tmp/kk.*/pid; do
        # Any user can create the directory or the file in /tmp: a process ID there proves nothing, and a FIFO blocks.
        # shellcheck disable=SC3067 # dash and busybox have -O
        [ -f "$kk_file" ] && [ -O "$kk_file" ] && [ -O "${kk_file%/pid}" ] && [ ! -L "${kk_file%/pid}" ] || continue
        { read -r kk_pid <"$kk_file"; } 2>/dev/null || continue
        kk_line=$(grep -e "^pid $kk_pid\$" -e "^pid $kk_pid " "$KK_LOCK" | tail -n 1)
        case $kk_line in
            '' | "pid $kk_pid $KK_RUN") ;;
            *) kill -s TERM "$kk_pid" 2>/dev/null || : ;;
        esac
    done
}

# Takes the lock, or prints why not.
kk_lock() {
    command -v flock >/dev/null || return 0
    [ -d "$KK_ROOT/run" ] || mkdir -p "$KK_ROOT/run"
    (umask 077 && : >>"$KK_LOCK") && exec 8<>"$KK_LOCK" || return 1
    kk_tries=0
    while :; do
        kk_read_lock
        if [ "$kk_owner $kk_run" = "$KK_OWNER $KK_RUN" ]; then
            flock -s 8
            kk_read_lock
            [ "$kk_owner $kk_run" != "$KK_OWNER $KK_RUN" ] || break
        fi
        if flock -n -x 8; then
            kk_read_lock
            # What this run knows of the host may be wrong by now.
            kk_lost_to=$(KK_RUN=$KK_RUN awk '$1 == ENVIRON["KK_RUN"] { sub(/^[^ ]* /, ""); print; exit }' "$KK_LOST" 2>/dev/null) || :
            if [ -n "$kk_lost_to" ]; then
                printf 'another kk has worked on this host since the last action of this run: %s\n' "$kk_lost_to"
                return 1
            fi
            kk_age=$(($(date +%s) - $(stat -c %Y "$KK_LOCK")))
            # A clock that was set back does not hold the host until the time of before.
            [ "$kk_age" -ge 0 ] || kk_age=$((-kk_age))
            if [ -z "$kk_owner" ] || [ "$kk_owner" = "$KK_OWNER" ] || [ "$kk_age" -ge "$KK_IDLE" ]; then
                [ -z "$kk_run" ] || [ "$kk_owner" = "$KK_OWNER" ] ||
                    (umask 077 && printf '%s %s\n' "$kk_run" "$KK_NAME" >>"$KK_LOST")
                printf '%s\n' "$KK_OWNER" "$KK_RUN" "$KK_NAME" >"$KK_LOCK"
                flock -s 8
                break
            fi
            printf 'another kk works on this host: %s, active %s s ago\n' "$kk_name" "$kk_age"
            return 1
        fi
        # Somebody takes it right now, or runs a batch.
        kk_patience=10
        if [ "$kk_owner" = "$KK_OWNER" ] && [ "$kk_run" != "$KK_RUN" ]; then
            kk_patience=100
            kk_end_orphans
        fi
        kk_tries=$((kk_tries + 1))
        if [ "$kk_tries" -gt "$kk_patience" ]; then
            printf 'another kk works on this host: %s, active now\n' "$kk_name"
            return 1
        fi
        sleep 0.2
    done
    kk_pid=$$
    [ ! -r ../pid ] || read -r kk_pid <../pid
    printf 'pid %s %s\n' "$kk_pid" "$KK_RUN" >>"$KK_LOCK"
}

# The end of a batch that is not the last one: from now on the owner is idle.
kk_touch() {
    [ -s "$KK_LOCK" ] || return 0
    kk_read_lock
    [ "$kk_owner $kk_run" != "$KK_OWNER $KK_RUN" ] || touch "$KK_LOCK"
}

# Gives the host free: this owner has nothing more to do on it.
kk_unlock() { : >"$KK_LOCK"; }

# The same at the end of a run of several plans, for which another one may have taken the host meanwhile.
kk_release() {
    [ -s "$KK_LOCK" ] || return 0
    kk_read_lock
    [ "$kk_owner $kk_run" != "$KK_OWNER $KK_RUN" ] || kk_unlock
}
