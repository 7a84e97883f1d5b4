# own_dnf REPOSITORY WORD…: dnf that knows the repository in a directory and nothing else. Sources, settings, plugins and lists
# of the host's own are neither read nor changed; only the database of rpm is the host's.
own_dnf() {
    repository=$1 state=$PWD/dnf
    shift
    mkdir -p "$state/none"
    cat >"$state/dnf.conf" <<END
[main]
reposdir=$state/none
varsdir=$state/none
pluginconfpath=$state/none
cachedir=$state/cache
logdir=$state/log
persistdir=$state/state
install_weak_deps=0
best=0
plugins=0
obsoletes=0
[kk-bundle]
name=kk-bundle
baseurl=file://$repository
gpgcheck=0
END
    # Without --allowerasing, and with nothing that obsoletes others, nothing is removed.
    LC_ALL=C dnf --config="$state/dnf.conf" "$@" </dev/null
}

# recorded_rpms: what a run that was killed wanted to install.
recorded_rpms() {
    awk -F '\t' '$1 == "rpms" { print $2 }' /etc/kubekey/owned 2>/dev/null || :
}
