//! Commands and options of KubeKey 3 that kk does not have: a user who types one learns the alternative.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::error::Error;

/// The command or option, and the alternative.
type Row = (&'static str, &'static str);

/// Commands, including those of KubeKey 4.
const COMMANDS: [Row; 11] = [
    ("init os", "`kk create cluster` does it; with `-a FILE --with-packages` it installs packages, too"),
    ("alpha", "`kk create cluster` and `kk upgrade` do only what is missing, so they need no phases"),
    ("create phase", "`kk create cluster` does only what is missing, so it needs no phases"),
    ("upgrade phase", "`kk upgrade` does only what is missing, so it needs no phases"),
    ("cri", "new clusters run containerd, and the runtime of a cluster is not replaced"),
    ("cluster-info", "use `kubectl cluster-info dump`"),
    ("plugin", "start a program by its own name: kk runs no others"),
    ("precheck", "`kk create cluster -f FILE --dry-run` checks all hosts, and changes nothing"),
    ("run", "kk runs no playbooks: its commands bring a cluster to what the Cluster file says"),
    ("create inventory", "`kk create config` writes a Cluster file, which names the hosts, too"),
    ("upgrade cluster", "it is `kk upgrade -f FILE`"),
];

const HOSTS: &str = "name the hosts in spec.hosts of the Cluster file, and give it with -f";
const SETTINGS: &str = "write the settings into the Cluster file, and give it with -f";

/// Options of nearly every command of KubeKey 4.
const KUBEKEY_4: [Row; 5] =
    [("-i", HOSTS), ("--inventory", HOSTS), ("-c", SETTINGS), ("--config", SETTINGS), ("--set", SETTINGS)];

const DOWNLOAD_CMD: Row = ("--download-cmd", "leave it out; spec.download.mirror names a mirror");
const IN_CLUSTER: Row =
    ("--in-cluster", "leave it out: kk works from a machine that reaches the hosts by SSH");

const CERTIFICATES_DIR: Row =
    ("--certificates-dir", "leave it out: they are in the directory of the cluster below --workdir");

/// Options, and values of options, by command.
const OPTIONS: [(&str, &[Row]); 10] = [
    (
        "create cluster",
        &[
            ("--with-local-storage", "leave it out, and name a storage class of yours in spec.addons"),
            (
                "--with-security-enhancement",
                "leave it out; spec.kubernetes.apiserverArgs takes arguments of yours",
            ),
            ("--container-manager docker", "leave it out: containerd runs the same images"),
            ("--container-manager crio", "leave it out: containerd runs the same images"),
            ("--container-manager isula", "leave it out: containerd runs the same images"),
            CERTIFICATES_DIR,
            DOWNLOAD_CMD,
            IN_CLUSTER,
        ],
    ),
    ("create manifest", &[("--name", "leave it out: the manifest gets the name of the cluster in the file")]),
    (
        "add nodes",
        &[
            ("--container-manager", "leave it out: new nodes get containerd, as all others"),
            ("--skip-etcd", "leave it out: members of etcd that run are not restarted"),
            CERTIFICATES_DIR,
            DOWNLOAD_CMD,
            IN_CLUSTER,
        ],
    ),
    (
        "delete cluster",
        &[("--with-kubernetes", "leave it out: every version is removed in the same way"), IN_CLUSTER],
    ),
    ("delete node", &[IN_CLUSTER]),
    (
        "upgrade",
        &[
            (
                "--skip-pull-images",
                "leave it out: nodes need the images of the new version before their turn",
            ),
            ("--skip-dependency-check", "leave it out; `--dry-run` shows what stands in the way"),
            (
                "--with-etcd",
                "name a version, or leave it out: etcd gets the version that goes with Kubernetes",
            ),
            DOWNLOAD_CMD,
            IN_CLUSTER,
        ],
    ),
    (
        "artifact export",
        &[
            ("--image-start-index", "leave it out: an export that is run again goes on where it ended"),
            ("--image-transport", "leave it out: images come from the registries in their names"),
            ("--download-cmd", "leave it out; spec.download.mirror of the manifest names a mirror"),
        ],
    ),
    (
        "artifact import",
        &[("--with-packages", "give it to `kk create cluster` or `kk add nodes`, with `-a FILE`")],
    ),
    (
        "artifact images push",
        &[(
            "--image-transport",
            "leave it out: images come from a bundle, or a directory with an OCI image layout",
        )],
    ),
    ("init registry", &[DOWNLOAD_CMD]),
];

/// Options of nearly every KubeKey command. In kk, only commands that change hosts have them.
const COMMON: [Row; 5] = [
    ("--debug", "leave it out: commands that change no host write no debug.log"),
    ("--yes", "leave it out: this command asks nothing"),
    ("-y", "leave it out: this command asks nothing"),
    ("--ignore-err", "leave it out: it is for commands that change hosts"),
    ("--namespace", "leave it out: kk stores nothing in the cluster"),
];

fn is_of_4(word: &str) -> bool {
    KUBEKEY_4.iter().any(|(name, _)| *name == word)
}

/// Commands of KubeKey that change no host.
const CHANGES_NO_HOST: [&str; 6] = [
    "create config",
    "create manifest",
    "artifact export",
    "artifact import",
    "artifact images push",
    "certs check-expiration",
];

/// The error for a command line that clap refused because of something that only KubeKey has. `line` contains the words after the
/// name of the binary.
pub fn only_there(refused: &clap::Error, line: &[String]) -> Option<Error> {
    let word = |context| match refused.get(context) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        _ => None,
    };
    let mut names: Vec<&str> =
        line.iter().map(String::as_str).take_while(|word| !word.starts_with('-')).collect();
    if let ["artifact", images @ ("image" | "i"), ..] = &mut names[..] {
        *images = "images";
    }
    let is_typed =
        |command: &str| command.split(' ').eq(names.iter().copied().take(command.split(' ').count()));
    let option = |name: &str| {
        let own = OPTIONS.iter().filter(|(command, _)| is_typed(command)).flat_map(|(_, rows)| rows.iter());
        let common = CHANGES_NO_HOST.into_iter().filter(|command| is_typed(command)).flat_map(|_| &COMMON);
        let (name, hint) = own.chain(common).chain(&KUBEKEY_4).find(|(known, _)| *known == name)?;
        Some(("an option", format!("`{name}`"), *hint))
    };
    let command = || {
        let (name, hint) = COMMANDS.into_iter().find(|(command, _)| is_typed(command))?;
        Some(("a command", format!("`kk {name}`"), hint))
    };
    let argument = word(ContextKind::InvalidArg).unwrap_or_default();
    if refused.kind() == ErrorKind::UnknownArgument && is_typed("add nodes") && !argument.starts_with('-') {
        return Some(Error::Usage {
            message: "`kk add nodes` takes no names".to_owned(),
            hint:
                "it adds the hosts of the file that are not in the cluster yet: name them in spec.hosts and \
                   spec.roleGroups of the file, and give it with -f"
                    .to_owned(),
        });
    }
    let (kind, name, hint) = match refused.kind() {
        ErrorKind::InvalidSubcommand => command(),
        // Options are checked first: the file may be missing because KubeKey has another option for it.
        ErrorKind::MissingRequiredArgument => line
            .iter()
            .map(|word| word.split('=').next().unwrap_or(word))
            .filter(|word| is_of_4(word))
            .find_map(option),
        // For a command without subcommands, such a word is an argument.
        ErrorKind::UnknownArgument => word(ContextKind::InvalidArg).and_then(option).or_else(command),
        // An option of both, with a value that only KubeKey knows, or without the value that kk needs.
        ErrorKind::InvalidValue => {
            let (name, _) = word(ContextKind::InvalidArg)?.split_once(' ')?;
            let value = word(ContextKind::InvalidValue).unwrap_or_default();
            let (_, typed, hint) = option(format!("{name} {value}").trim_end())?;
            if value.is_empty() {
                Some(("an option", format!("{typed} without a value"), hint))
            } else {
                Some(("a value", typed, hint))
            }
        }
        _ => None,
    }?;
    Some(Error::Usage { message: format!("{name} is {kind} that only KubeKey has"), hint: hint.into() })
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::args::Cli;

    /// The commands and options of KubeKey 3.1.12 and of earlier versions (phases, `--in-cluster`, `--certificates-dir`), one
    /// command per line. `upgrade --with-etcd`, which KubeKey accepts without a version, is below.
    const KUBEKEY: [&str; 22] = [
        "create cluster --filename --with-kubernetes --with-kubesphere --with-local-storage --skip-pull-images \
         --skip-push-images --skip-install-addons --with-security-enhancement --container-manager \
         --download-cmd --artifact --with-packages --debug --yes --ignore-err --namespace --in-cluster \
         --certificates-dir",
        "create config --name --filename --with-kubernetes --with-kubesphere --from-cluster --kubeconfig --debug \
         --yes --ignore-err --namespace",
        "create manifest --name --filename --kubeconfig --with-kubernetes --with-registry --arch --debug --yes \
         --ignore-err --namespace",
        "create phase",
        "upgrade phase",
        "add nodes --filename --skip-pull-images --container-manager --download-cmd --artifact --with-packages \
         --skip-etcd --debug --yes --ignore-err --namespace --in-cluster --certificates-dir",
        "delete cluster --filename --with-kubernetes --all --debug --yes --ignore-err --namespace --in-cluster",
        "delete node --filename --debug --yes --ignore-err --namespace --in-cluster",
        "upgrade --filename --with-kubernetes --with-kubesphere --skip-pull-images --download-cmd --artifact \
         --skip-dependency-check --debug --yes --ignore-err --namespace --in-cluster",
        "certs check-expiration --filename --debug --yes --ignore-err --namespace",
        "certs renew --filename --debug --yes --ignore-err --namespace",
        "artifact export --manifest --output --download-cmd --image-start-index --image-transport \
         --skip-remove-artifact --debug --yes -y --ignore-err --namespace",
        "artifact import --artifact --with-packages --debug --yes --ignore-err --namespace",
        "artifact images push --filename --images-dir --artifact --image-transport --debug --yes --ignore-err \
         --namespace",
        "init os",
        "init registry --filename --download-cmd --artifact --debug --yes --ignore-err --namespace",
        "cluster-info",
        "completion --type",
        "version --output --show-supported-k8s",
        "plugin",
        "alpha",
        "cri",
    ];

    fn answer(line: &str) -> Option<String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let refused = Cli::try_parse_from(["kk".to_owned()].iter().chain(&words)).err()?;
        match only_there(&refused, &words)? {
            Error::Usage { message, hint } => Some(format!("{message}: {hint}")),
            _ => None,
        }
    }

    /// Whether kk has the command, and the option if one is given.
    fn is_here(names: &[&str], option: Option<&str>) -> bool {
        let mut command = Cli::command();
        command.build();
        let found = names.iter().try_fold(&command, |command, name| command.find_subcommand(name));
        let has = |command: &clap::Command, option: &str| {
            command.get_arguments().any(|arg| {
                let long = arg.get_long().is_some_and(|long| option == format!("--{long}"));
                long || arg.get_short().is_some_and(|short| option == format!("-{short}"))
            })
        };
        found.is_some_and(|command| option.is_none_or(|option| has(command, option)))
    }

    #[test]
    fn all_that_kubekey_has_is_here_or_has_an_answer() {
        for line in KUBEKEY {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (names, options) =
                words.split_at(words.iter().take_while(|word| !word.starts_with('-')).count());
            for option in options.iter().copied().map(Some).chain([None]) {
                let typed = [names, option.as_slice()].concat().join(" ");
                let is_answered = answer(&typed).is_some();
                assert_ne!(is_here(names, option), is_answered, "kk {typed}: has an answer: {is_answered}");
            }
        }
    }

    #[test]
    fn values_that_only_kubekey_takes_have_an_answer() {
        for (line, answered) in [
            ("create cluster --container-manager docker", true),
            ("create cluster --container-manager=crio", true),
            ("create cluster --container-manager isula -y", true),
            ("upgrade --with-etcd -f c.yaml", true),
            ("artifact image push --image-transport docker", true),
            ("artifact i push --yes", true),
            ("create cluster --container-manager podman", false),
            ("create cluster --with-kubernetes", false),
            ("delete cluster -a", false),
        ] {
            assert_eq!(answer(line).is_some(), answered, "{line}");
        }
    }
}
