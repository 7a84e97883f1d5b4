# Whether sudo lets $user run everything as root without a password. Of the rules for all commands the last one counts.
# shellcheck disable=SC2154 # user stands before this script
may_become_root() {
    [ "$(id -u "$user" 2>/dev/null)" != 0 ] || return 0
    LC_ALL=C sudo -n -l -U "$user" 2>/dev/null | awk '
        /^ +\([^)]*\) / {
            users = commands = $0
            sub(/^ +\(/, "", users)
            sub(/ *[:)].*/, "", users)
            sub(/^ +\([^)]*\) +/, "", commands)
            gsub(/\\,/, "_", commands) # a comma in the arguments of a command
            # Groups and uids may stand for root, too: such a rule can only take the right away.
            is_root = may_be_root = 0
            count = split(users, names, / *, */)
            for (i = 1; i <= count; i++) {
                if (names[i] == "ALL" || names[i] == "root") is_root = may_be_root = 1
                if (names[i] ~ /^[#%+]/) may_be_root = 1
            }
            if (!may_be_root) next
            has_exception = users ~ /!/ || commands ~ /!/
            # A tag or an option (CWD=, NOTAFTER=, ...) is valid for all commands behind it, a checksum for one.
            without_password = is_limited = 0
            count = split(commands, list, / *, */)
            for (i = 1; i <= count; i++) {
                while (match(list[i], /^[A-Z_]+(:|=[^ ]*) */)) {
                    tag = substr(list[i], 1, RLENGTH)
                    if (tag ~ /^NOPASSWD:/) without_password = 1
                    if (tag ~ /^PASSWD:/) without_password = 0
                    if (tag ~ /=/) is_limited = 1
                    list[i] = substr(list[i], RLENGTH + 1)
                }
                has_sum = sub(/^sha[0-9]+:[^ ]* +/, "", list[i])
                if (list[i] == "ALL" || list[i] == "!ALL")
                    free = is_root && without_password && !has_exception && !is_limited && !has_sum
                else if (list[i] ~ /^!/) free = 0
            }
        }
        END { exit !free }'
}
