//! Install packages from the bundle.

use std::{collections::BTreeSet, fs, sync::Arc, time::Duration};

use async_trait::async_trait;
use kk_artifact::{
    Store,
    bundle::{ContentFile, HostPackages, PackagePart},
};
use kk_connector::{Command, Payload, UploadFile};
use kk_engine::{
    Action, Apply, Change, Context, Facts, Failure, HostWork, Question, Run, Script, Task, actions::Upload,
    question,
};

use super::packages::{self, Chosen};
use crate::{inputs::Inputs, shell};

/// Where the packages lie on a host until they are installed.
const REPOSITORY: &str = "/var/lib/kubekey/packages";

/// Whether a run that was killed has left a package half-installed.
pub(super) const UNFINISHED: Question<bool> =
    Question::new("unfinished_packages", include_str!("unfinished_packages.sh"), question::yes_or_no);

/// On hosts that lack programs. Before all that needs these.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task =
        Task::new("install_packages", "Install packages from the bundle").timeout(Duration::from_mins(15));
    for (host, facts) in inputs.hosts() {
        let Some(Ok(chosen)) = packages::of_bundle(inputs, host, facts) else { continue };
        let install = Install { from: Arc::new(From { chosen, store: inputs.store.clone() }) };
        task = task.on(&host.name, HostWork::new(vec![Box::new(install)]));
    }
    task
}

struct Install {
    from: Arc<From>,
}

/// The packages that are wanted, and what they come from.
struct From {
    chosen: Chosen,
    store: Arc<Store>,
}

impl Action for Install {
    fn check(&self, _facts: &Facts) -> Change {
        let names = self.from.chosen.names.iter().copied().collect::<Vec<_>>().join(", ");
        Change::needed(match &*names {
            "" => "finish the installation of packages".to_owned(),
            names => format!("install {names} from the bundle"),
        })
    }

    fn apply(&self, facts: &Facts) -> Apply {
        let unfinished = facts.answer(&UNFINISHED).answered() == Some(true);
        Apply::Run(Arc::new(Send { from: self.from.clone(), unfinished }))
    }

    fn hint(&self, stderr: &str) -> Option<String> {
        let has = |words: &str| stderr.contains(words);
        let hint = if has("unmet dependencies")
            || has("held broken packages")
            || has("but remove is disabled")
        {
            "the packages of the host do not go with those of the bundle: if the host is newer, make the bundle again; otherwise \
             install them by other means"
        } else if has("dpkg was interrupted") || has("--configure -a") {
            "run \"dpkg --configure -a\" on the host, and this command again"
        } else if has("Could not get lock") {
            "another package manager works on the host: wait until it has ended, and run again"
        } else if has("No space left") {
            return Some(format!(
                "free space on the host: {REPOSITORY} and the packages need it, and run again"
            ));
        } else {
            return None;
        };
        Some(hint.to_owned())
    }
}

struct Send {
    from: Arc<From>,
    unfinished: bool,
}

#[async_trait]
impl Run for Send {
    async fn run(&self, context: Context) -> Result<(), Failure> {
        let HostPackages { list, packages } = &self.from.chosen.from;
        let path = self.from.store.blob(&list.digest);
        let list: Arc<[u8]> = fs::read(&path)
            .map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))?
            .into();
        let plan = self.choose(&context, list.clone()).await?;
        if plan.unpacked.is_empty() {
            return Ok(());
        }
        for (name, before, after) in &plan.upgraded {
            (context.note)(format!(
                "upgrades the package {name} from {before} to {after}, because a new one needs that; a delete leaves it so"
            ));
        }
        let files = plan.files(packages)?;
        match self.upload(&plan, files, list).apply(&Facts::default()) {
            Apply::Run(run) => run.run(context).await,
            _ => Ok(()),
        }
    }

    fn transfers(&self) -> bool {
        true
    }
}

impl Send {
    /// Lets apt on the host say what it would do: what is there already is not sent.
    async fn choose(&self, context: &Context, list: Arc<[u8]>) -> Result<Plan, Failure> {
        let script = script(&self.from.chosen.names, include_str!("choose_packages.sh"));
        let unfinished = if self.unfinished { "yes" } else { "" };
        let script = shell::script(&[("unfinished", unfinished)], &script);
        let files = vec![Payload { name: packages::LIST.into(), content: list }];
        let command =
            Command { files, cancel: context.cancel.clone(), ..Command::new(format!("set -e\n{script}")) };
        let output = context.connection.run(command).await?;
        if output.code == 0 {
            return Ok(Plan::parse(&output.stdout));
        }
        let stderr = output.stderr.lines().map(str::to_owned).collect();
        Err(Failure { stderr, ..Failure::new("apt cannot choose packages from the bundle") })
    }

    fn upload(&self, plan: &Plan, files: Vec<&ContentFile>, list: Arc<[u8]>) -> Upload {
        let wanted = self.from.chosen.names.iter().copied().collect::<Vec<_>>().join(" ");
        let variables = [("repository", REPOSITORY), ("wanted", wanted.as_str())];
        let text = shell::script(&variables, &script(&plan.added, include_str!("install_packages.sh")));
        let file = |file: &ContentFile| UploadFile {
            source: self.from.store.blob(&file.digest),
            target: format!("{REPOSITORY}/{}", file.path.rsplit('/').next().unwrap_or_default()),
            mode: 0o600,
            sha256: file.sha256.clone(),
        };
        let script = Script::new(text).with_file(packages::LIST, list);
        Upload::new(files.into_iter().map(file).collect()).taken_by(script)
    }
}

/// A script with the function `own_apt` and these arguments.
fn script<S: AsRef<str>>(arguments: impl IntoIterator<Item = S>, text: &str) -> String {
    let words: Vec<String> =
        arguments.into_iter().map(|word| kk_connector::quote(word.as_ref()).to_string()).collect();
    format!("{}set -- {}\n{text}", include_str!("apt.sh"), words.join(" "))
}

/// What apt would do.
#[derive(Debug, Default, PartialEq, Eq)]
struct Plan {
    /// Name and version of what is unpacked.
    unpacked: Vec<(String, String)>,
    /// Packages that are new, in the order in which they are set up: each after those that it needs.
    added: Vec<String>,
    /// Packages that are there in another version: name, old and new version.
    upgraded: Vec<(String, String, String)>,
}

impl Plan {
    /// Reads a simulation: `Inst NAME [OLD] (NEW …)`, and `Conf NAME (NEW …)`.
    fn parse(simulation: &str) -> Self {
        let mut plan = Self::default();
        let mut set_up = Vec::new();
        for line in simulation.lines() {
            let Some((word, rest)) = line.split_once(' ') else { continue };
            let Some((name, rest)) = rest.split_once(' ') else { continue };
            match word {
                "Conf" => set_up.push(name.to_owned()),
                "Inst" => {
                    let new = rest.split_once('(').map_or("", |(_, new)| new);
                    let new = new.split([' ', ')']).next().unwrap_or_default();
                    plan.unpacked.push((name.to_owned(), new.to_owned()));
                    if let Some((old, _)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
                        plan.upgraded.push((name.to_owned(), old.to_owned(), new.to_owned()));
                    }
                }
                _ => {}
            }
        }
        let upgraded: BTreeSet<&String> = plan.upgraded.iter().map(|(name, ..)| name).collect();
        plan.added = set_up.into_iter().filter(|name| !upgraded.contains(name)).collect();
        plan
    }

    /// The files of what is unpacked.
    fn files<'a>(&self, packages: &'a [(PackagePart, ContentFile)]) -> Result<Vec<&'a ContentFile>, Failure> {
        let file = |(name, version): &(String, String)| {
            let found = packages.iter().find(|(part, _)| part.name == *name && part.version == *version);
            found
                .map(|(_, file)| file)
                .ok_or_else(|| Failure::new(format!("{name} {version} is not in the bundle")))
        };
        self.unpacked.iter().map(file).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simulation_says_what_is_new_and_in_which_order() {
        let said = "Reading package lists...\nInst libc6 [2.36-9+deb12u4] (2.36-9+deb12u14 local [amd64])\n\
            Inst libwrap0 (7.6.q-32 local [amd64])\nInst socat (1.7.4.4-2 [amd64])\nInst less (2:590) []\n\
            Conf libc6 (2.36-9+deb12u14 local [amd64])\nConf libwrap0 (7.6.q-32 local [amd64])\nConf socat (1.7.4.4-2)\n";
        let pair = |name: &str, version: &str| (name.to_owned(), version.to_owned());
        let (old, new) = ("2.36-9+deb12u4".to_owned(), "2.36-9+deb12u14".to_owned());
        let expected = Plan {
            unpacked: vec![
                pair("libc6", &new),
                pair("libwrap0", "7.6.q-32"),
                pair("socat", "1.7.4.4-2"),
                pair("less", "2:590"),
            ],
            added: vec!["libwrap0".into(), "socat".into()],
            upgraded: vec![("libc6".into(), old, new)],
        };
        assert_eq!(Plan::parse(said), expected);
        let part = PackagePart {
            system: "debian".into(),
            system_version: "12".into(),
            arch: "amd64".into(),
            name: "socat".into(),
            version: "1.7.4.4-3".into(),
            path: String::new(),
        };
        let file = ContentFile { digest: String::new(), path: String::new(), sha256: String::new() };
        let said = expected.files(&[(part, file)]).unwrap_err().to_string();
        assert!(said.contains("libc6"), "{said}");
    }
}
