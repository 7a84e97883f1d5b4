# Prints the installed packages, and what dnf would do to install the packages in the arguments, by the lists in the directory of
# this script. After a killed run, the packages of that run are included. The remains of its repository, which show that it was
# killed, are removed here.
# shellcheck disable=SC2154,SC2046 # unfinished stands before this script; names of packages
if [ -n "$unfinished" ]; then
    set -- "$@" $(recorded_rpms)
    rm -rf /var/lib/kubekey/packages
fi
mkdir repodata && mv -- *.xml* repodata/
if own_dnf "$PWD" --assumeno install "$@" >said 2>&1 || grep -q '^Operation aborted' said; then
    rpm -qa --queryformat 'installed %{NAME} %|EPOCH?{%{EPOCH}:}:{}|%{VERSION}-%{RELEASE}\n'
    cat said
else
    tail -n 15 said >&2
    exit 1
fi
