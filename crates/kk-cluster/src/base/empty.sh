# empty DIRECTORY: never across a mount. To `find`, a mount from the same file system looks like a part of the directory, so a
# volume that is still mounted is a failure.
empty() {
    [ -d "$1" ] || return 0
    real=$(readlink -f "$1") || return
    if KK_D=$real/ awk 'index($5, ENVIRON["KK_D"]) == 1 { any = 1 } END { exit !any }' /proc/self/mountinfo; then
        kk_fail "something is still mounted below $1: unmount it, and run again"
        return 1
    fi
    find "$real" -xdev -mindepth 1 -delete
}
