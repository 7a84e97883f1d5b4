# own_apt REPOSITORY ARGUMENT…: apt-get that knows only the repository in a directory. The host's own sources, settings, hooks and
# lists are neither read nor changed; only the database of dpkg is shared with the host.
own_apt() {
    repository=$1 state=$PWD/apt
    shift
    mkdir -p "$state/none" "$state/lists/partial" "$state/cache/archives/partial"
    printf 'deb [trusted=yes] file:%s ./\n' "$repository" >"$state/sources.list"
    cat >"$state/apt.conf" <<END
Dir::Etc::main "$state/none/apt.conf";
Dir::Etc::parts "$state/none";
Dir::Etc::sourcelist "$state/sources.list";
Dir::Etc::sourceparts "$state/none";
Dir::Etc::preferences "$state/none/preferences";
Dir::Etc::preferencesparts "$state/none";
Dir::State::lists "$state/lists";
Dir::State::extended_states "$state/extended_states";
Dir::Cache "$state/cache";
APT::Install-Recommends "false";
APT::Get::Upgrade "false";
APT::Get::Remove "false";
APT::Sandbox::User "root";
APT::Update::Error-Mode "any";
Acquire::Languages "none";
DPkg::Lock::Timeout "300";
DPkg::Options { "--force-confdef"; "--force-confold"; };
END
    APT_CONFIG=$state/apt.conf DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -q -y "$@"
}
