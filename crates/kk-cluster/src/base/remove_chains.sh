# remove_chains PREFIXES: removes the chains whose names begin with one of PREFIXES (an alternation of an extended regular
# expression), and the rules that jump to them. Each table is replaced as a whole in one step, so that the host's own rules never
# disappear for a moment.
remove_chains() {
    chains="^(:|-A )($1)-| -[jg] ($1)-"
    for tool in iptables ip6tables; do
        command -v $tool-save >/dev/null || continue
        $tool-save >rules 2>/dev/null || continue
        grep -qE "$chains" rules || continue
        grep -vE "$chains" rules | $tool-restore
    done
}
