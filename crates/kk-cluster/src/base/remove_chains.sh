# remove_rules EXPRESSION: removes the lines of iptables-save that match an extended regular expression: rules, and chains. Each
# table is replaced as a whole in one step, so that the host's own rules stay in effect.
remove_rules() {
    for tool in iptables ip6tables; do
        command -v $tool-save >/dev/null || continue
        $tool-save >rules 2>/dev/null || continue
        grep -qE -e "$1" rules || continue
        grep -vE -e "$1" rules | $tool-restore
    done
}

# remove_chains PREFIXES: removes the chains whose names begin with one of PREFIXES (an alternation of an extended regular
# expression), and the rules that jump to them.
remove_chains() {
    remove_rules "^(:|-A )($1)-| -[jg] ($1)-"
}
