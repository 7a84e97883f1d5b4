# Asks every address of the file "pods" from this node: lines of what answers there, a tab, and a URL. They all answer
# within $patience seconds; those that do not are named, each with what was heard last.
# shellcheck disable=SC2154 # node and patience stand before this script, and the function ask
until=$(($(kk_uptime) + patience))
: >unreached
while IFS=$(printf '\t') read -r name url; do
    until ask "$url" 2>ask.err </dev/null; do
        if [ "$(kk_uptime)" -ge $until ]; then
            tail -n 1 ask.err >&2
            echo "$name at $url" >>unreached
            break
        fi
        sleep 0.2 2>/dev/null || sleep 1
    done
done <pods
[ ! -s unreached ] || kk_fail "from $node there is no answer of $(paste -sd , unreached | sed 's/,/, and of /g')"
