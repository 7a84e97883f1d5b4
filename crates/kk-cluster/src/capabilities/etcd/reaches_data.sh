# Whether every user may enter the directories above etcd's data, its keys and its binary. A missing directory is created later
# with mode 0755.
# shellcheck disable=SC2154 # data stands before this script
reaches() {
    path=$(readlink -f "$1") || path=$1
    while [ "${path:-/}" != / ]; do
        path=${path%/*}
        [ -d "$path/" ] || continue
        case $(stat -c %a "$path/") in
        *[1357]) ;;
        *) return 1 ;;
        esac
    done
}
if reaches "$data" && reaches /etc/ssl/etcd/ssl/ca.pem && reaches /usr/local/bin/etcd; then echo yes; else echo no; fi
