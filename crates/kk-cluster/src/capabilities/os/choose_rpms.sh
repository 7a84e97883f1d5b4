# Prints what is installed and what dnf would do to install the packages of the arguments, by the lists beside this script.
mkdir repodata && mv -- *.xml* repodata/
if own_dnf "$PWD" --assumeno install "$@" >said 2>&1 || grep -q '^Operation aborted' said; then
    rpm -qa --queryformat 'installed %{NAME} %|EPOCH?{%{EPOCH}:}:{}|%{VERSION}-%{RELEASE}\n'
    cat said
else
    tail -n 15 said >&2
    exit 1
fi
