# Queries every address in the file "pods" from this node; its lines are a name, a tab, and a URL. Succeeds if all of them answer
# within $patience seconds. Otherwise it reports the addresses without an answer, each with the last error.
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
