# Functions for the scripts that change a host. Sourced before each operation; POSIX sh, works with dash and busybox.
#
# Each change of kk is recorded in /etc/kubekey/owned before it is made, one tab-separated line each; kk_disown_all reverts all of
# them. Kinds of lines:
#   cluster NAME CA MACHINE    the cluster that the host belongs to, SHA-256 of its CA, the host's machine id; the head
#   made PATH [USER]           a file or link that did not exist; with USER it is written and removed as that user
#   saved PATH [USER]          a file or link whose original is /etc/kubekey/saved/PATH
#   dir PATH [USER]            a directory that did not exist
#   attr PATH MODE OWNER       the previous attributes of a directory
#   block PATH BEGIN END NL    a marked block in a file that kk does not own; NL is "bare" if the file had no last newline
#   marked PATH PREFIX         lines of a file that were commented out with PREFIX
#   sysctl NAME VALUE          the previous value of a kernel setting
#   module NAME                a kernel module that was not loaded
#   unit-on NAME               a unit that kk enabled or started
#   unit-off NAME WAS ACTIVE   a unit that kk turned off: "enabled" or not, "active" or not
#   user NAME                  a user that did not exist
#   swap DEVICE                a swap device that was in use
#   package NAME WAS           a package that was not installed: "absent", or "config-files" if its configuration files were still there
#   rpms NAMES                 packages of rpm that were not installed, separated by blanks

# KK_ROOT is empty on a host; tests set it to a temporary directory.
KK_ROOT=${KK_ROOT-}
KK_STATE=$KK_ROOT/etc/kubekey
KK_TAB=$(printf '\t')
# For kk_guard: the user that runs this script, and the directories that are known to be safe, each between tabs.
KK_SELF='' KK_SAFE=$KK_TAB

# kk_do COMMAND…: runs a command; if it fails, the error names it.
kk_do() {
    "$@" || {
        kk_code=$?
        printf 'kk-command: %s\n' "$*" >&2
        return $kk_code
    }
}

kk_fail() {
    printf '%s\n' "$*" >&2
    return 1
}

# kk_sync FILE: writes the content of a file to disk. Without that, a power cut after a rename may leave an empty file. Old versions
# of sync write everything, and their warning about the argument is not shown. A link has no content. Hosts without sync do without.
kk_sync() {
    [ -L "$1" ] || ! command -v sync >/dev/null 2>&1 || kk_said=$(sync "$1" 2>&1) ||
        kk_fail "cannot write ${1#"$KK_ROOT"} to disk: $kk_said"
}

# Creates the state directory, and removes a last line that a power cut left incomplete.
kk_state() {
    [ -z "${KK_STATE_READY-}" ] || return 0
    # shellcheck disable=SC2174 # the directories above it are the system's
    [ -d "$KK_STATE" ] || mkdir -m 700 -p "$KK_STATE"
    if [ ! -e "$KK_STATE/owned" ]; then
        (umask 077 && : >>"$KK_STATE/owned")
    elif [ -n "$(tail -c 1 "$KK_STATE/owned")" ]; then
        (umask 077 && sed '$d' "$KK_STATE/owned" >"$KK_STATE/owned.new") &&
            kk_sync "$KK_STATE/owned.new" &&
            mv -f "$KK_STATE/owned.new" "$KK_STATE/owned" || return
    fi
    KK_STATE_READY=1
}

# kk_record LINE: records a line once. One short append is complete or absent, even if another script appends concurrently.
kk_record() {
    kk_state || return
    grep -qxF -e "$1" "$KK_STATE/owned" || { printf '%s\n' "$1" >>"$KK_STATE/owned" && kk_sync "$KK_STATE/owned"; }
}

# kk_recorded PREFIX: whether a line begins with PREFIX and a tab.
kk_recorded() {
    kk_state || return
    KK_P="$1$KK_TAB" awk 'index($0, ENVIRON["KK_P"]) == 1 { found = 1; exit } END { exit !found }' "$KK_STATE/owned"
}

# kk_belong NAME CA: records which cluster the host belongs to, by its name and the SHA-256 of its CA. A host of another cluster
# is refused.
kk_belong() {
    kk_state || return
    kk_known=$(awk -F '\t' '$1 == "cluster" { print; exit }' "$KK_STATE/owned")
    case $kk_known in
    "cluster$KK_TAB$1$KK_TAB$2$KK_TAB"*) return 0 ;;
    ?*)
        kk_known=${kk_known#*"$KK_TAB"}
        kk_fail "this host belongs to the cluster ${kk_known%%"$KK_TAB"*} (identity ${kk_known#*"$KK_TAB"})" || return
        ;;
    esac
    kk_record "cluster$KK_TAB$1$KK_TAB$2$KK_TAB$(cat "$KK_ROOT/etc/machine-id" 2>/dev/null || echo -)"
}

# kk_belong_anew NAME CA: the same for a host of this cluster whose CA was replaced.
kk_belong_anew() {
    kk_state || return
    kk_new=$KK_STATE/owned.new
    KK_N=$1 KK_C=$2 awk 'BEGIN { FS = OFS = "\t" } $1 == "cluster" && $2 == ENVIRON["KK_N"] { $3 = ENVIRON["KK_C"] } { print }' "$KK_STATE/owned" >"$kk_new" &&
        chmod 600 "$kk_new" && kk_sync "$kk_new" && mv -f "$kk_new" "$KK_STATE/owned" && kk_belong "$1" "$2"
}

# kk_parents PATH: creates the missing parent directories and records them from the top.
kk_parents() {
    kk_rest=${1#/} kk_at=
    while :; do
        case $kk_rest in */*) ;; *) return 0 ;; esac
        kk_at=$kk_at/${kk_rest%%/*} kk_rest=${kk_rest#*/}
        [ -d "$KK_ROOT$kk_at" ] && continue
        kk_record "dir$KK_TAB$kk_at" && mkdir -m 755 "$KK_ROOT$kk_at" || return
    done
}

# kk_guard PATH [follow]: fails unless only root can change the directories above PATH. Otherwise another user could replace one
# of them by a link, and root would write through that link. A link of root is followed, and its target is checked in the same way.
# PATH itself is not checked; with "follow", a link at PATH is followed, too. A directory that a group may write to is accepted:
# some distributions give /usr/local to the group staff.
kk_guard() {
    kk_state || return
    [ -n "$KK_SELF" ] || KK_SELF=$(stat -c %u "$KK_STATE")
    kk_way=$KK_ROOT kk_todo=$1 kk_links=0
    while :; do
        kk_step=${kk_todo%%/*}
        case $kk_todo in */*) kk_todo=${kk_todo#*/} ;; *) kk_todo='' ;; esac
        case $kk_step in
        '' | .) ;;
        ..) kk_way=${kk_way%/*} ;;
        *)
            kk_way=$kk_way/$kk_step
            if [ -L "$kk_way" ]; then
                [ -n "$kk_todo${2-}" ] || return 0
                kk_guard_one "$1" || return
                kk_links=$((kk_links + 1))
                [ $kk_links -le 40 ] || kk_fail "$1: too many links lead to it" || return
                kk_todo=$(readlink "$kk_way")${kk_todo:+/$kk_todo} kk_way=${kk_way%/*}
                case $kk_todo in /*) kk_way='' ;; esac
            elif [ -n "$kk_todo" ]; then
                # Only root can create a missing directory here.
                [ -d "$kk_way" ] || return 0
                kk_guard_one "$1" || return
            fi
            ;;
        esac
        [ -n "$kk_todo" ] || return 0
    done
}

# kk_guard_one PATH: for kk_guard, whether only root can change the directory or link kk_way.
kk_guard_one() {
    case $KK_SAFE in *"$KK_TAB$kk_way$KK_TAB"*) return 0 ;; esac
    kk_who=$(stat -c '%u %a %U' "$kk_way") || return
    kk_rights=${kk_who#* } kk_shown=${kk_way#"$KK_ROOT"}
    case ${kk_who%% *} in
    0 | "$KK_SELF") ;;
    *)
        kk_what=directory
        [ ! -L "$kk_way" ] || kk_what='link'
        kk_fail "$1 is not touched: the $kk_what $kk_shown belongs to the user ${kk_who##* }, who could lead root elsewhere; it must belong to root" || return
        ;;
    esac
    if [ ! -L "$kk_way" ]; then
        case ${kk_rights% *} in
        [1357]???) ;;
        *[2367]) kk_fail "$1 is not touched: every user may write to $kk_shown; it must be writable for root only" || return ;;
        esac
    fi
    KK_SAFE=$KK_SAFE$kk_way$KK_TAB
}

# kk_own PATH: before a path is changed for the first time, keeps the original or records that there was none.
kk_own() {
    kk_state || return
    kk_guard "$1" || return
    [ ! -d "$KK_ROOT$1" ] || [ -L "$KK_ROOT$1" ] || kk_fail "$1 is a directory" || return
    kk_parents "$1" || return
    case $1 in /etc/kubekey/*) return 0 ;; esac
    grep -qxF -e "made$KK_TAB$1" -e "saved$KK_TAB$1" "$KK_STATE/owned" && return 0
    if [ ! -e "$KK_ROOT$1" ] && [ ! -L "$KK_ROOT$1" ]; then
        kk_record "made$KK_TAB$1"
        return
    fi
    kk_copy=$KK_STATE/saved$1
    (umask 077 && mkdir -p "${kk_copy%/*}") &&
        rm -rf "$kk_copy" "$kk_copy.part" &&
        cp -a "$KK_ROOT$1" "$kk_copy.part" &&
        kk_sync "$kk_copy.part" &&
        mv "$kk_copy.part" "$kk_copy" &&
        kk_record "saved$KK_TAB$1"
}

# kk_replace NEW FILE: renames NEW over FILE (below KK_ROOT). A bind-mounted file cannot be replaced by a rename, so it is written
# in place.
kk_replace() {
    [ ! -d "$2" ] || [ -L "$2" ] || kk_fail "$2 is a directory" || return
    kk_sync "$1" || return
    mv -f "$1" "$2" 2>/dev/null && return 0
    cat "$1" >"$2" && kk_sync "$2" && rm -f "$1"
}

# kk_put SOURCE PATH MODE OWNER: writes a file completely or not at all, with its attributes from the first byte. Chained, because
# "set -e" is off where a caller checks the result. "set -C" refuses a new file that exists, so no link is followed.
kk_put() {
    kk_new=$KK_ROOT${2%/*}/.${2##*/}.kk-new
    kk_own "$2" || return
    rm -f "$kk_new" &&
        (umask 077 && set -C && cat "$1" >"$kk_new") &&
        chown -h "$4" "$kk_new" &&
        chmod "$3" "$kk_new" &&
        kk_replace "$kk_new" "$KK_ROOT$2" && return 0
    rm -f "$kk_new"
    return 1
}

# kk_attributes PATH MODE OWNER: sets the attributes of a file that has its content already.
kk_attributes() {
    kk_own "$1" && kk_guard "$1" follow && chown "$3" "$KK_ROOT$1" && chmod "$2" "$KK_ROOT$1"
}

# kk_dir PATH MODE OWNER
kk_dir() {
    kk_guard "$1" follow || return
    if [ -d "$KK_ROOT$1" ]; then
        if ! grep -qxF -e "dir$KK_TAB$1" "$KK_STATE/owned" 2>/dev/null && ! kk_recorded "attr$KK_TAB$1"; then
            kk_record "attr$KK_TAB$1$KK_TAB$(stat -c "%a$KK_TAB%U:%G" "$KK_ROOT$1")"
        fi
    else
        kk_parents "$1" && kk_record "dir$KK_TAB$1" && mkdir -m "$2" "$KK_ROOT$1" || return
    fi
    chown "$3" "$KK_ROOT$1" && chmod "$2" "$KK_ROOT$1"
}

# kk_as USER TEXT: runs shell text as USER, with the standard input and output of the caller. Another process of USER can trace this
# shell and use its open files. So it inherits no other file and no variable, and its output is not trusted.
kk_as() (
    cd / && exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- || exit
    kk_uid=$(id -u -- "$1") && kk_gid=$(id -g -- "$1") || exit
    if [ "$kk_uid" = "$(id -u)" ]; then
        set -- sh -c "$2"
    elif command -v runuser >/dev/null 2>&1; then
        set -- runuser -u "$1" -- sh -c "$2"
    elif command -v setpriv >/dev/null 2>&1; then
        set -- setpriv --reuid "$kk_uid" --regid "$kk_gid" --init-groups -- sh -c "$2"
    else
        set -- su -s /bin/sh -c "$2" -- "$1"
    fi
    exec timeout -k 5 60 env -i PATH="$PATH" LC_ALL=C "$@"
)

# The text that kk_file_as runs by kk_as. Standard input has four lines (verb, directory, name, word) and then the content.
# shellcheck disable=SC2016 # for another shell
KK_FILE_AS='
umask 077
fail() { printf "%s\n" "$*" >&2; exit 1; }
IFS= read -r verb && IFS= read -r dir && IFS= read -r name && IFS= read -r word || exit
file=$dir/$name new=$dir/.$name.kk-new
case $verb in
look)
    if [ -L "$file" ]; then printf "link %s\n" "$(readlink "$file")"
    elif [ -f "$file" ]; then printf "file %s\n" "$(stat -c %a "$file")" && cat "$file"
    elif [ -e "$file" ]; then echo other
    elif [ -d "$dir" ]; then echo none
    else echo no-directory
    fi ;;
read) [ ! -f "$file" ] || { printf "file %s\n" "$(stat -L -c %a "$file")" && cat "$file"; } ;;
put)
    [ -d "$dir" ] || mkdir -m 700 "$dir" || exit
    [ ! -d "$file" ] || fail "$file is a directory"
    rm -f "$new" && (set -C && cat >"$new") && chmod "$word" "$new" && mv -f "$new" "$file" && exit
    rm -f "$new"
    exit 1 ;;
link)
    [ -d "$dir" ] || mkdir -m 700 "$dir" || exit
    ln -sfn "$word" "$file" ;;
copy) cp -p "$file" "$dir/$word" ;;
remove) rm -f "$file" "$new" ;;
rmdir) [ ! -d "$file" ] || rmdir "$file" ;;
esac'

# The largest file that is read from a user, in bytes.
KK_MOST=1048576

# kk_file_as USER VERB PATH [WORD [SOURCE]]: reads or changes a file of USER as that user. As root it would follow the user's links.
# The output is in ./kk-as.said. Its size and time are limited, because the user can keep the shell from ending.
kk_file_as() {
    rm -f kk-as.asked kk-as.ended
    (umask 077 && printf '%s\n' "$2" "$KK_ROOT${3%/*}" "${3##*/}" "${4-}" >kk-as.asked) || return
    [ -z "${5-}" ] || cat "$5" >>kk-as.asked || return
    { kk_as "$1" "$KK_FILE_AS" <kk-as.asked 2>&1 && : >kk-as.ended; } |
        (umask 077 && timeout -k 5 70 head -c $((KK_MOST + 64)) >kk-as.said) || :
    rm -f kk-as.asked
    if [ -e kk-as.ended ]; then
        rm -f kk-as.ended
        return 0
    fi
    kk_why=''
    IFS= read -r kk_why <kk-as.said || :
    # An error never shows the content of the file.
    case $kk_why in "file "*) kk_why='it is too large, or cannot be read to its end' ;; esac
    case $2 in put | link) kk_done='write' ;; remove | rmdir) kk_done='remove' ;; *) kk_done='read' ;; esac
    kk_fail "cannot $kk_done $3 as the user $1: $(printf %s "$kk_why" | head -c 300 | LC_ALL=C tr -c ' -~' '?')"
}

# kk_read_as USER PATH: copies a file of USER to ./kk-as.content, and sets kk_mode to its mode. Fails if PATH is not a file.
kk_read_as() {
    kk_file_as "$1" read "$2" && kk_content_as "$2"
}

# kk_content_as PATH: the same for the output of kk_file_as, for PATH.
kk_content_as() {
    IFS= read -r kk_mode <kk-as.said || return
    case $kk_mode in "file "[0-7][0-7][0-7]) kk_mode=${kk_mode#file } ;; *) kk_mode=600 ;; esac
    (umask 077 && tail -n +2 kk-as.said >kk-as.content) || return
    [ "$(wc -c <kk-as.content)" -le $KK_MOST ] || kk_fail "$1 is larger than $KK_MOST bytes"
}

# kk_own_as USER PATH: kk_own for a file of USER.
kk_own_as() {
    kk_state || return
    grep -qxF -e "made$KK_TAB$2$KK_TAB$1" -e "saved$KK_TAB$2$KK_TAB$1" "$KK_STATE/owned" && return 0
    kk_file_as "$1" look "$2" || return
    kk_copy=$KK_STATE/saved$2 kk_was=''
    IFS= read -r kk_was <kk-as.said || :
    case $kk_was in
    none) kk_record "made$KK_TAB$2$KK_TAB$1" ;;
    no-directory) kk_record "dir$KK_TAB${2%/*}$KK_TAB$1" && kk_record "made$KK_TAB$2$KK_TAB$1" ;;
    "file "* | "link "?*)
        (umask 077 && mkdir -p "${kk_copy%/*}") && rm -rf "$kk_copy" "$kk_copy.part" || return
        case $kk_was in
        link*) ln -s "${kk_was#link }" "$kk_copy.part" || return ;;
        *) kk_content_as "$2" && mv -f kk-as.content "$kk_copy.part" && chmod "$kk_mode" "$kk_copy.part" || return ;;
        esac
        mv "$kk_copy.part" "$kk_copy" && kk_record "saved$KK_TAB$2$KK_TAB$1"
        ;;
    *) kk_fail "$2 is neither a file nor a link" ;;
    esac
}

# kk_put_as USER SOURCE PATH: writes a file of USER as that user, with mode 600. The directory of PATH is created if it is missing.
kk_put_as() {
    kk_own_as "$1" "$3" && kk_file_as "$1" put "$3" 600 "$2"
}

# kk_disown_as KIND PATH USER: kk_disown for lines of kk_own_as.
kk_disown_as() {
    kk_copy=$KK_STATE/saved$2
    if ! id "$3" >/dev/null 2>&1; then
        [ ! -e "$KK_ROOT$2" ] || kk_note "the user $3 is gone, $2 stays"
        return 0
    fi
    case $1 in
    made) kk_file_as "$3" remove "$2" ;;
    dir) kk_file_as "$3" rmdir "$2" 2>/dev/null || kk_note "$2 is not empty, it stays" ;;
    saved)
        [ -e "$kk_copy" ] || [ -L "$kk_copy" ] || return 0
        if [ ! -d "$KK_ROOT${2%/*/*}" ]; then
            kk_note "the home directory of $3 is gone, $2 is not put back"
        elif [ -L "$kk_copy" ]; then
            kk_file_as "$3" link "$2" "$(readlink "$kk_copy")" || return
        else
            kk_file_as "$3" put "$2" "$(stat -c %a "$kk_copy")" "$kk_copy" || return
        fi
        rm -rf "$kk_copy"
        ;;
    esac
}

# kk_link TARGET PATH
kk_link() {
    kk_own "$2" && ln -sfn "$1" "$KK_ROOT$2"
}

# kk_edit_block PATH BEGIN END [SOURCE]: puts SOURCE's lines between the marker lines, in place of an older block or at the end;
# without SOURCE the block is removed. A begin marker without an end marker is treated as ordinary text. A link stays a link. The
# result is kk_new, for kk_file.
kk_edit_block() {
    kk_file=$(readlink -f "$KK_ROOT$1") && kk_new=${kk_file%/*}/.${kk_file##*/}.kk-new || return
    rm -f "$kk_new" && cp -a "$kk_file" "$kk_new" || return
    KK_B=$2 KK_E=$3 KK_S=${4-} awk '
        function block(   line) {
            if (ENVIRON["KK_S"] == "" || done) return
            print ENVIRON["KK_B"]
            while ((getline line < ENVIRON["KK_S"]) > 0) print line
            print ENVIRON["KK_E"]
            done = 1
        }
        inside && $0 == ENVIRON["KK_E"] { block(); inside = 0; held = ""; next }
        inside { held = held "\n" $0; next }
        $0 == ENVIRON["KK_B"] { inside = 1; held = $0; next }
        { print }
        END { if (inside) print held; block() }' "$kk_file" >"$kk_new"
}

# kk_block PATH BEGIN END SOURCE: a marked block in a file; the rest of the file stays unchanged.
kk_block() {
    if [ ! -e "$KK_ROOT$1" ]; then
        kk_own "$1" && : >"$KK_ROOT$1" && chmod 644 "$KK_ROOT$1" || return
    fi
    if ! kk_recorded "block$KK_TAB$1$KK_TAB$2"; then
        kk_nl=full
        [ -z "$(tail -c 1 "$KK_ROOT$1")" ] || kk_nl=bare
        kk_record "block$KK_TAB$1$KK_TAB$2$KK_TAB$3$KK_TAB$kk_nl"
    fi
    kk_edit_block "$1" "$2" "$3" "$4" && kk_replace "$kk_new" "$kk_file"
}

# kk_sysctl NAME VALUE: sets a live kernel setting. A setting that cannot be written is left; its file takes effect later.
kk_sysctl() {
    kk_knob=$KK_ROOT/proc/sys/$(printf %s "$1" | tr './' '/.')
    [ -e "$kk_knob" ] || return 0
    kk_old=$(tr -s '\t ' '  ' <"$kk_knob")
    [ "$kk_old" != "$2" ] || return 0
    [ -w "$kk_knob" ] || return 0
    kk_recorded "sysctl$KK_TAB$1" || kk_record "sysctl$KK_TAB$1$KK_TAB$kk_old"
    printf '%s\n' "$2" >"$kk_knob"
}

# kk_module NAME: loads a kernel module; a built-in module counts as loaded.
kk_module() {
    ! grep -q "^$1 " "$KK_ROOT/proc/modules" 2>/dev/null || return 0
    modprobe "$1"
    ! grep -q "^$1 " "$KK_ROOT/proc/modules" 2>/dev/null || kk_record "module$KK_TAB$1"
}

# kk_unit_does VERB NAME [--no-block]: systemctl, with the unit's last messages if it fails.
kk_unit_does() {
    kk_verb=$1
    shift
    systemctl "$kk_verb" "$@" && return 0
    systemctl reset-failed "$1" 2>/dev/null || :
    systemctl "$kk_verb" "$@" && return 0
    echo "last lines of $1:" >&2
    journalctl -u "$1" -n 15 --no-pager -o cat >&2 || :
    return 1
}

# kk_unit NAME ENABLED STATE [--no-block]: ENABLED is yes, no or keep; STATE is start, restart, reload, stop or keep.
kk_unit() {
    kk_was=$(systemctl show -p UnitFileState -p ActiveState -p NeedDaemonReload "$1")
    case $kk_was in *NeedDaemonReload=yes*) systemctl daemon-reload ;; esac
    kk_on=disabled kk_up=inactive
    case $kk_was in *UnitFileState=enabled*) kk_on=enabled ;; esac
    case $kk_was in *ActiveState=active*) kk_up=active ;; esac
    if [ "$2" = yes ] && [ $kk_on = disabled ]; then
        kk_record "unit-on$KK_TAB$1"
        systemctl enable -q "$1"
    elif [ "$2" = no ] || [ "$3" = stop ]; then
        if ! grep -qxF -e "unit-on$KK_TAB$1" "$KK_STATE/owned" 2>/dev/null && ! kk_recorded "unit-off$KK_TAB$1"; then
            kk_record "unit-off$KK_TAB$1$KK_TAB$kk_on$KK_TAB$kk_up"
        fi
        [ "$2" != no ] || systemctl disable -q "$1"
    fi
    case $3 in
    keep) ;;
    start | restart | reload)
        [ $kk_on = enabled ] || [ $kk_up = active ] || kk_record "unit-on$KK_TAB$1"
        # shellcheck disable=SC2086 # no fourth word, no argument
        kk_unit_does "$3" "$1" ${4-}
        ;;
    *)
        # shellcheck disable=SC2086
        kk_unit_does "$3" "$1" ${4-}
        ;;
    esac
}

# kk_user NAME [OPTION…]: adds a user, by useradd with these options. A useradd that was killed may have created the user without
# the group.
kk_user() {
    if id "$1" >/dev/null 2>&1; then
        id -gn "$1" >/dev/null 2>&1 || groupadd --system --gid "$(id -g "$1")" "$1"
        return
    fi
    kk_record "user$KK_TAB$1"
    kk_name=$1
    shift
    useradd "$@" "$kk_name"
}

# kk_swap_off: ends the use of swap now, and comments it out of /etc/fstab for later.
kk_swap_off() {
    tail -n +2 "$KK_ROOT/proc/swaps" | while read -r kk_dev kk_rest; do
        kk_record "swap$KK_TAB$kk_dev"
        swapoff "$kk_dev"
    done
    kk_pattern='^[^#[:space:]][^[:space:]]*[[:space:]][[:space:]]*[^[:space:]][^[:space:]]*[[:space:]][[:space:]]*swap'
    grep -q "$kk_pattern" "$KK_ROOT/etc/fstab" 2>/dev/null || return 0
    kk_record "marked$KK_TAB/etc/fstab$KK_TAB#kubekey# "
    cp -a "$KK_ROOT/etc/fstab" "$KK_ROOT/etc/.fstab.kk-new"
    sed "/$kk_pattern/s/^/#kubekey# /" "$KK_ROOT/etc/fstab" >"$KK_ROOT/etc/.fstab.kk-new"
    kk_replace "$KK_ROOT/etc/.fstab.kk-new" "$KK_ROOT/etc/fstab"
}

# kk_uptime: seconds since boot, which no correction of the clock changes.
kk_uptime() {
    cut -d . -f 1 /proc/uptime
}

# kk_wait SECONDS PAUSE WORDS: runs the file "condition" until it ends with 0. On failure, prints the output of the last check.
kk_wait() {
    kk_until=$(($(kk_uptime) + $1))
    until sh -e ./condition >condition.out 2>&1; do
        if [ "$(kk_uptime)" -ge "$kk_until" ]; then
            tail -n 10 condition.out >&2
            kk_fail "$3 for $1 s" || return
        fi
        sleep "$2" 2>/dev/null || sleep 1
    done
}

# kk_remember_sums LIST: adds known SHA-256 checksums of files to those that the probe has stored. Lines of LIST: SUM PATH.
kk_remember_sums() {
    [ -d "$KK_STATE" ] || return 0
    kk_sums=$KK_STATE/sums
    while read -r kk_sum kk_path; do
        stat -c "$kk_sum$KK_TAB%s$KK_TAB%.9Y$KK_TAB%.9Z$KK_TAB%i$KK_TAB%n" "$KK_ROOT$kk_path"
    done <"$1" >kk-sums.fresh
    [ -e "$kk_sums" ] || (umask 077 && : >"$kk_sums")
    # A unique name: several uploads may end at once. If a checksum is lost by this, the file is only read again.
    (umask 077 && awk -F '\t' 'NR == FNR { fresh[$6] = 1; print; next } !($6 in fresh)' kk-sums.fresh "$kk_sums" >"$kk_sums.$$")
    mv -f "$kk_sums.$$" "$kk_sums"
}

# kk_disown KIND PATH A B C: reverts one line. A change that is gone already is no error.
kk_disown() {
    case $1 in
    made | saved | dir)
        if [ -n "${3-}" ]; then
            kk_disown_as "$1" "$2" "$3"
            return
        fi
        kk_guard "$2" || return
        ;;
    marked) kk_guard "$2" || return ;;
    attr) kk_guard "$2" follow || return ;;
    esac
    # Leftovers of an upload or of kk_put that a power cut ended.
    case $1 in made | saved) rm -f "$KK_ROOT${2%/*}"/.kk-????????????????-"${2##*/}" "$KK_ROOT${2%/*}/.${2##*/}.kk-new" ;; esac
    case $1 in
    made) rm -f "$KK_ROOT$2" ;;
    saved)
        kk_copy=$KK_STATE/saved$2
        [ -e "$kk_copy" ] || [ -L "$kk_copy" ] || return 0
        kk_new=$KK_ROOT${2%/*}/.${2##*/}.kk-new
        mkdir -p "$KK_ROOT${2%/*}" && rm -rf "$kk_new" && cp -a "$kk_copy" "$kk_new" || return
        kk_replace "$kk_new" "$KK_ROOT$2" && rm -rf "$kk_copy"
        ;;
    dir) [ ! -d "$KK_ROOT$2" ] || rmdir "$KK_ROOT$2" 2>/dev/null || kk_note "$2 is not empty, it stays" ;;
    attr) [ ! -d "$KK_ROOT$2" ] || { chown "$4" "$KK_ROOT$2" && chmod "$3" "$KK_ROOT$2"; } ;;
    block)
        [ -e "$KK_ROOT$2" ] || return 0
        kk_edit_block "$2" "$3" "$4" || return
        [ "$5" != bare ] || { kk_text=$(cat "$kk_new") && printf %s "$kk_text" >"$kk_new"; }
        kk_replace "$kk_new" "$kk_file"
        ;;
    marked)
        [ -e "$KK_ROOT$2" ] || return 0
        kk_new=$KK_ROOT${2%/*}/.${2##*/}.kk-new
        cp -a "$KK_ROOT$2" "$kk_new" || return
        KK_P=$3 awk 'index($0, ENVIRON["KK_P"]) == 1 { $0 = substr($0, length(ENVIRON["KK_P"]) + 1) } { print }' \
            "$KK_ROOT$2" >"$kk_new" && kk_replace "$kk_new" "$KK_ROOT$2"
        ;;
    sysctl)
        kk_knob=$KK_ROOT/proc/sys/$(printf %s "$2" | tr './' '/.')
        [ ! -w "$kk_knob" ] || printf '%s\n' "$3" >"$kk_knob"
        ;;
    module) modprobe -r "$2" 2>/dev/null || kk_note "kernel module $2 is in use, it stays" ;;
    unit-on) systemctl disable -q --now "$2" 2>/dev/null || kk_note "unit $2 is gone already" ;;
    unit-off)
        [ "$3" != enabled ] || systemctl enable -q "$2" || return
        [ "$4" != active ] || systemctl start "$2"
        ;;
    user) ! id "$2" >/dev/null 2>&1 || userdel "$2" ;;
    swap)
        if [ ! -e "$2" ]; then
            kk_note "swap $2 is gone already"
        elif ! awk -v dev="$2" '$1 == dev { found = 1 } END { exit !found }' "$KK_ROOT/proc/swaps" 2>/dev/null; then
            swapon "$2"
        fi
        ;;
    package)
        kk_now=$(dpkg-query -W -f '${db:Status-Status}' "$2" 2>/dev/null) || kk_now=not-installed
        case $kk_now in not-installed | "$3") return 0 ;; esac
        kk_verb=--purge
        [ "$3" != config-files ] || kk_verb=--remove
        if ! dpkg --no-act $kk_verb "$2" >/dev/null 2>&1; then
            kk_note "package $2 is needed by others, it stays"
        else
            DEBIAN_FRONTEND=noninteractive dpkg $kk_verb "$2" >kk-dpkg.said 2>&1 || {
                tail -n 5 kk-dpkg.said >&2
                return 1
            }
        fi
        ;;
    rpms) kk_remove_rpms "$2" ;;
    *) kk_note "unknown line, left alone: $1 $2" ;;
    esac
}

# kk_remove_rpms NAMES: removes all at once if no other package needs one of them. Otherwise removes each after the packages that
# need it.
kk_remove_rpms() {
    kk_names=''
    for kk_name in $1; do
        ! rpm -q "$kk_name" >/dev/null 2>&1 || kk_names="$kk_names $kk_name"
    done
    [ -n "$kk_names" ] || return 0
    # shellcheck disable=SC2086 # names of packages
    if rpm -e --test $kk_names >/dev/null 2>&1; then
        rpm -e $kk_names >kk-rpm.said 2>&1 && return 0
        tail -n 5 kk-rpm.said >&2
        return 1
    fi
    while :; do
        kk_kept='' kk_gone=''
        for kk_name in $kk_names; do
            rpm -q "$kk_name" >/dev/null 2>&1 || continue
            if ! rpm -e --test "$kk_name" >/dev/null 2>&1; then
                kk_kept="$kk_kept $kk_name"
            elif rpm -e "$kk_name" >kk-rpm.said 2>&1; then
                kk_gone=yes
            else
                tail -n 5 kk-rpm.said >&2
                return 1
            fi
        done
        [ -n "$kk_gone" ] && [ -n "$kk_kept" ] || break
        kk_names=$kk_kept
    done
    for kk_name in $kk_kept; do
        kk_note "package $kk_name is needed by others, it stays"
    done
}

# kk_note WORDS: a message that the user should know although nothing failed.
kk_note() {
    printf 'note: %s\n' "$*" >&2
}

# kk_disown_all [KEEP]: reverts everything, from the last line to the first, and then removes the record itself. Lines that match
# the extended regular expression KEEP stay unchanged. Lines that fail stay for the next run, with the lines that they need and
# the head line.
kk_disown_all() {
    [ -d "$KK_STATE" ] || return 0
    kk_state || return
    : >kk-owned.kept
    grep -v "^cluster$KK_TAB" "$KK_STATE/owned" >kk-owned.all || :
    grep "^cluster$KK_TAB" "$KK_STATE/owned" >kk-owned.head || :
    if [ -n "${1-}" ]; then
        mv kk-owned.all kk-owned.both
        grep -E -e "$1" kk-owned.both >kk-owned.kept || :
        grep -vE -e "$1" kk-owned.both >kk-owned.all || :
    fi
    kk_disown_lines kk-owned.all
    # Lines that were kept on purpose belong to no cluster; lines that failed still do.
    [ -s kk-owned.left ] || : >kk-owned.head
    kk_keep_lines
}

# kk_disown_only PATTERN: reverts the lines that match the extended regular expression. All other lines stay, with the head line.
kk_disown_only() {
    [ -d "$KK_STATE" ] || return 0
    kk_state || return
    grep -E -e "$1" "$KK_STATE/owned" >kk-owned.all || :
    grep -vE -e "$1" "$KK_STATE/owned" >kk-owned.kept || :
    : >kk-owned.head
    kk_disown_lines kk-owned.all
    kk_keep_lines
}

# kk_keep_lines: writes the record of the remaining lines: the head line, kept lines, and failed lines. An empty record is
# removed.
kk_keep_lines() {
    if [ ! -s kk-owned.left ] && [ ! -s kk-owned.kept ]; then
        rm -rf "$KK_STATE"
        return
    fi
    (umask 077 && kk_reversed kk-owned.left | cat kk-owned.head kk-owned.kept - >"$KK_STATE/owned.new") &&
        kk_sync "$KK_STATE/owned.new" &&
        mv -f "$KK_STATE/owned.new" "$KK_STATE/owned" || return
    [ ! -s kk-owned.left ] ||
        kk_fail "$(wc -l <kk-owned.left) thing(s) could not be taken back; /etc/kubekey/owned names them"
}

# kk_disown_lines FILE: reverts its lines, from the last to the first. Lines that fail are in kk-owned.left.
kk_disown_lines() {
    kk_reversed "$1" >kk-owned.back
    : >kk-owned.left
    while IFS= read -r kk_line; do
        kk_kind=${kk_line%%"$KK_TAB"*}
        IFS=$KK_TAB
        set -f
        # shellcheck disable=SC2086 # split at the tabs
        set -- ${kk_line#*"$KK_TAB"}
        set +f
        unset IFS
        kk_disown "$kk_kind" "${1-}" "${2-}" "${3-}" "${4-}" </dev/null || printf '%s\n' "$kk_line" >>kk-owned.left
    done <kk-owned.back
    ! command -v systemctl >/dev/null 2>&1 || systemctl daemon-reload 2>/dev/null || :
}

# kk_reversed FILE: prints its lines in reverse order.
kk_reversed() {
    awk '{ line[NR] = $0 } END { for (i = NR; i > 0; i--) print line[i] }' "$1"
}
