# Whether the installation of a recorded package is unfinished. rpm does not report that, so a repository that was not removed
# counts.
if grep -q '^rpms' /etc/kubekey/owned 2>/dev/null && [ -e /var/lib/kubekey/packages ]; then
    echo yes
else
    awk -F '\t' '$1 == "package" { print $2 }' /etc/kubekey/owned 2>/dev/null |
        while read -r package; do dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null || :; done |
        grep -qvxE 'installed|config-files|not-installed' && echo yes || echo no
fi
