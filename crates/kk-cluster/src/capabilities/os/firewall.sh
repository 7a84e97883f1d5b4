# Prints which firewall is active and what it lets pass, as lines of a word and its value.
if command -v firewall-cmd >/dev/null && firewall-cmd --state >/dev/null 2>&1; then
    echo "firewall firewalld"
    {
        firewall-cmd --list-ports
        for service in $(firewall-cmd --list-services); do
            firewall-cmd --permanent --service="$service" --get-ports
        done
    } 2>/dev/null </dev/null | tr ' ' '\n' | sed '/./!d; s/^/open /'
    firewall-cmd --zone=trusted --list-sources 2>/dev/null | tr ' ' '\n' | sed '/./!d; s/^/trusts /'
fi
# The unit of ufw is active even if ufw is not enabled, so only the output of ufw itself counts.
if command -v ufw >/dev/null; then
    LC_ALL=C ufw status 2>/dev/null | awk '
        $1 == "Status:" { if ($2 != "active") exit; print "firewall ufw"; next }
        $2 != "ALLOW" { next }
        $1 == "Anywhere" { print "trusts", $NF; next }
        {
            n = split($1, part, "/")
            gsub(":", "-", part[1])
            if (n < 2 || part[2] == "tcp") print "open", part[1] "/tcp"
            if (n < 2 || part[2] == "udp") print "open", part[1] "/udp"
        }'
fi
