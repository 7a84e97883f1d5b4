# own_dnf REPOSITORY ARGUMENT…: dnf that knows only the repository in a directory. The host's own sources, settings, plugins and
# lists are neither read nor changed; only the database of rpm is shared with the host.
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
    # Without --allowerasing and with obsoletes=0, no package is removed.
    LC_ALL=C dnf --config="$state/dnf.conf" "$@" </dev/null
}

# recorded_rpms: the packages that a killed run intended to install.
recorded_rpms() {
    awk -F '\t' '$1 == "rpms" { print $2 }' /etc/kubekey/owned 2>/dev/null || :
}
