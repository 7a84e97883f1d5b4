//! Commands and options of KubeKey 3 that are not here yet: whoever types one from habit learns what to do instead.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::error::Error;

/// Commands, each by the word that is unknown here, with the full name and what to do instead.
const COMMANDS: [(&str, &str, &str); 4] = [
    (
        "os",
        "kk init os",
        "`kk create cluster` does it; with `-a FILE --with-packages` it installs packages, too",
    ),
    ("alpha", "kk alpha", "`kk create cluster` does only what is missing, so it needs no phases"),
    ("cri", "kk cri migrate", "new clusters run containerd"),
    ("cluster-info", "kk cluster-info", "use `kubectl cluster-info dump`"),
];

/// Options, each with the command that had it and what to do instead.
const OPTIONS: [(&str, &str, &str); 9] = [
    ("--with-local-storage", "create", "leave it out, and install a storage class when the cluster is there"),
    (
        "--with-security-enhancement",
        "create",
        "leave it out; spec.kubernetes.apiserverArgs takes arguments of yours",
    ),
    ("--download-cmd", "create", "leave it out; spec.download.mirror names a mirror"),
    ("--download-cmd", "init", "leave it out; spec.download.mirror names a mirror"),
    ("--skip-push-images", "create", "leave it out: only `kk artifact images push` pushes images"),
    ("--skip-install-addons", "create", "leave spec.addons out of the file"),
    ("--from-cluster", "create", "write the file by hand; `kk create config` gives one to start from"),
    ("--kubeconfig", "create", "leave it out: only `kk create manifest` asks a running cluster"),
    ("--with-kubernetes", "delete", "leave it out: every version is removed in the same way"),
];

/// The error for a command line that clap refused because of something that only KubeKey has. `first` is its first word.
pub fn not_yet(refused: &clap::Error, first: &str) -> Option<Error> {
    let word = |context| match refused.get(context) {
        Some(ContextValue::String(word)) => Some(word),
        _ => None,
    };
    let (name, hint) = match refused.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = word(ContextKind::InvalidSubcommand)?;
            COMMANDS.iter().find(|(known, ..)| known == word).map(|(_, name, hint)| (name, hint))?
        }
        ErrorKind::UnknownArgument => {
            let word = word(ContextKind::InvalidArg)?;
            let known = |(option, command, _): &&(&str, &str, &str)| option == word && *command == first;
            OPTIONS.iter().find(known).map(|(option, _, hint)| (option, hint))?
        }
        _ => return None,
    };
    Some(Error::Usage { message: format!("`{name}` of KubeKey is not there yet"), hint: (*hint).into() })
}
