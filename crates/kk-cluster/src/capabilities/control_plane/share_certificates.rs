//! Share the cluster's CAs with further control planes, through the control machine's memory only.

use std::sync::Arc;

use async_trait::async_trait;
use kk_config::{Role, Secret};
use kk_connector::Command;
use kk_engine::{Action, Apply, Change, Context, Facts, Failure, HostWork, Run, Slot, Task};

use super::shared_files::{FOR_JOINS, source_for_joins};
use crate::{inputs::Inputs, slots};

/// Only when a further control plane is to join.
pub(super) fn task(inputs: &Inputs) -> Task {
    let task = Task::new("share_certificates", "Share the cluster's CAs");
    if !inputs.joining().iter().any(|host| host.has_role(&Role::ControlPlane)) {
        return task;
    }
    let read = Read { names: &FOR_JOINS, slot: slots::cluster_certificates_slot };
    task.on(
        &source_for_joins(inputs).name,
        HostWork::new(vec![Box::new(read)])
            .needs(slots::initialised_slot())
            .provides(slots::cluster_certificates_slot().key()),
    )
}

/// Reads files of `/etc/kubernetes/pki` into a slot: the Base64 text of a tar archive.
#[derive(Clone, Copy)]
pub(super) struct Read {
    pub names: &'static [&'static str],
    pub slot: fn() -> Slot<Secret>,
}

impl Read {
    /// What is there of them is no answer: at the end of a pipe the failure of tar would not show.
    fn script(&self) -> String {
        let names = self.names.join(" ");
        format!(
            "for name in {names}; do [ -s \"/etc/kubernetes/pki/$name\" ] || {{ echo \"/etc/kubernetes/pki has no $name\" >&2; exit 1; }}; done\n\
             tar -C /etc/kubernetes/pki -cf - {names} | base64 -w 0\n"
        )
    }
}

impl Action for Read {
    fn check(&self, _facts: &Facts) -> Change {
        Change::needed("read what control planes share")
    }

    fn apply(&self, _facts: &Facts) -> Apply {
        Apply::Run(Arc::new(*self))
    }

    /// The host stays as it is.
    fn is_change(&self) -> bool {
        false
    }
}

#[async_trait]
impl Run for Read {
    async fn run(&self, context: Context) -> Result<(), Failure> {
        let mut command = Command::new(self.script());
        command.cancel = context.cancel.clone();
        let output = context.connection.run(command).await?;
        if output.code != 0 {
            return Err(Failure {
                stderr: output.stderr.lines().map(str::to_owned).collect(),
                ..Failure::new("cannot read what control planes share")
            });
        }
        context.slots.fill(&(self.slot)(), Secret::new(output.stdout));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::testing;

    #[test]
    fn a_part_of_the_files_is_no_answer() {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path().display().to_string();
        let read = Read { names: &FOR_JOINS, slot: slots::cluster_certificates_slot };
        let text = read.script().replace("/etc/kubernetes/pki", &here);
        let run = || {
            let output = testing::run_script(directory.path(), &text);
            (output.status.success(), output.stdout.is_empty(), String::from_utf8(output.stderr).unwrap())
        };
        for name in FOR_JOINS {
            fs::write(directory.path().join(name), "x").unwrap();
        }
        assert_eq!(run(), (true, false, String::new()));
        fs::remove_file(directory.path().join("ca.key")).unwrap();
        assert_eq!(run(), (false, true, format!("{here} has no ca.key\n")));
    }
}
