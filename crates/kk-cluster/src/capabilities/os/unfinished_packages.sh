# Whether a package of the record is between two states.
awk -F '\t' '$1 == "package" { print $2 }' /etc/kubekey/owned 2>/dev/null |
    while read -r package; do dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null || :; done |
    grep -qvxE 'installed|config-files|not-installed' && echo yes || echo no
