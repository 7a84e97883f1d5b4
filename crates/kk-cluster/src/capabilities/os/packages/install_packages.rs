//! Install packages from the bundle.

use std::{fs, sync::Arc, time::Duration};

use async_trait::async_trait;
use kk_artifact::{
    Store,
    bundle::{ContentFile, HostPackages},
};
use kk_connector::{Command, Payload, UploadFile};
use kk_engine::{
    Action, Apply, Change, Context, Facts, Failure, HostWork, Question, Run, Script, Task, actions::Upload,
    question,
};

use super::{
    Chosen,
    transaction::{Manager, Transaction},
};
use crate::{base::shell, model::inputs::Inputs};

/// The directory of the packages on a host until they are installed.
const REPOSITORY: &str = "/var/lib/kubekey/packages";

/// Whether a killed run left a package half-installed.
pub(crate) const UNFINISHED: Question<bool> =
    Question::new("unfinished_packages", include_str!("unfinished_packages.sh"), question::yes_or_no);

/// Runs on hosts that lack tools, before all tasks that need them.
pub(crate) fn task(inputs: &Inputs) -> Task {
    let mut task =
        Task::new("install_packages", "Install packages from the bundle").timeout(Duration::from_mins(15));
    for (host, facts) in inputs.hosts() {
        let Some(Ok(chosen)) = super::of_bundle(inputs, host, facts) else { continue };
        let install = Install { from: Arc::new(From { chosen, store: inputs.store.clone() }) };
        task = task.on(&host.name, HostWork::new(vec![Box::new(install)]));
    }
    task
}

struct Install {
    from: Arc<From>,
}

/// The wanted packages, and their source.
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
        let not_together = [
            "unmet dependencies",
            "held broken packages",
            "but remove is disabled",
            "conflicting requests",
            "nothing provides",
        ];
        let hint = if not_together.into_iter().any(has) {
            "the packages of the host conflict with the packages of the bundle: if the host is newer, \
             export the bundle again; otherwise install them by other means"
        } else if has("dpkg was interrupted") || has("--configure -a") {
            "run \"dpkg --configure -a\" on the host, and this command again"
        } else if has("Could not get lock") {
            "another package manager is running on the host: wait until it ends, and run again"
        } else if has("dnf: not found") || has("dnf: command not found") {
            "install dnf on the host, or the packages by other means"
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
        let HostPackages { lists, packages } = &self.from.chosen.from;
        let manager = Manager::of(&self.from.chosen.from);
        let lists = lists.iter().map(|(path, file)| self.list(path, file)).collect::<Result<Vec<_>, _>>()?;
        let transaction = self.choose(&context, manager, &lists).await?;
        if transaction.unpacked.is_empty() {
            return Ok(());
        }
        for (name, before, after) in &transaction.upgraded {
            (context.note)(format!(
                "upgrades the package {name} from {before} to {after}, because a new package needs that; kk \
                 delete cluster does not revert it"
            ));
        }
        let files = transaction.files(packages)?;
        match self.upload(manager, &transaction, files, lists).apply(&Facts::default()) {
            Apply::Run(run) => run.run(context).await,
            _ => Ok(()),
        }
    }

    fn transfers(&self) -> bool {
        true
    }
}

impl Send {
    /// A list of packages, under the last part of its name.
    fn list(&self, path: &str, file: &ContentFile) -> Result<Payload, Failure> {
        let at = self.from.store.blob(&file.digest);
        let content =
            fs::read(&at).map_err(|error| Failure::new(format!("cannot read {}: {error}", at.display())))?;
        Ok(Payload { name: path.rsplit('/').next().unwrap_or(path).to_owned(), content: content.into() })
    }

    /// Queries the package manager of the host for the packages that it would install, so that only these are sent.
    async fn choose(
        &self,
        context: &Context,
        manager: &Manager,
        lists: &[Payload],
    ) -> Result<Transaction, Failure> {
        let script = manager.script(&self.from.chosen.names, manager.choose);
        let unfinished = if self.unfinished { "yes" } else { "" };
        let script = shell::script(&[("unfinished", unfinished)], &script);
        let (files, cancel) = (lists.to_vec(), context.cancel.clone());
        let command = Command { files, cancel, ..Command::new(format!("set -e\n{script}")) };
        let output = context.connection.run(command).await?;
        if output.code == 0 {
            return Ok((manager.parse)(&output.stdout));
        }
        let stderr = output.stderr.lines().map(str::to_owned).collect();
        let message = format!("{} cannot choose packages from the bundle", manager.name);
        Err(Failure { stderr, ..Failure::new(message) })
    }

    fn upload(
        &self,
        manager: &Manager,
        transaction: &Transaction,
        files: Vec<&ContentFile>,
        lists: Vec<Payload>,
    ) -> Upload {
        let wanted = self.from.chosen.names.iter().copied().collect::<Vec<_>>().join(" ");
        let variables = [("repository", REPOSITORY), ("wanted", wanted.as_str())];
        let text = shell::script(&variables, &manager.script(&transaction.added, manager.install));
        let file = |file: &ContentFile| UploadFile {
            source: self.from.store.blob(&file.digest),
            target: format!("{REPOSITORY}/{}", file.path.rsplit('/').next().unwrap_or_default()),
            mode: 0o600,
            sha256: file.sha256.clone(),
        };
        let script = lists
            .into_iter()
            .fold(Script::new(text), |script, list| script.with_file(list.name, list.content));
        Upload::new(files.into_iter().map(file).collect()).taken_by(script)
    }
}
