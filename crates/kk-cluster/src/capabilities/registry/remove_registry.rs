//! Remove the registry.

use kk_config::OwnRegistry;
use kk_engine::{CONTROL, HostWork, Task, actions::Command};

use super::{UNIT_FILE, certificates, recorded};
use crate::{
    base::{requirements::Recorded, shell::script, slots},
    model::{actions::RemoveLocal, inputs::Inputs},
};

/// Only what kk has made. Its images stay unless they are to go, and with them their directory. Its CA goes from the control machine
/// when the host is done: clients trust no other registry by it.
pub(crate) fn tasks(inputs: &Inputs, own: &OwnRegistry<'_>, with_data: bool) -> Vec<Task> {
    let mut remove = Task::new("remove_registry", "Remove the registry");
    let mut forget =
        Task::new("forget_registry", "Remove certificates of the registry from the control machine");
    let Some(facts) = inputs.facts(own.host) else { return vec![remove, forget] };
    let mut work = HostWork::new(vec![Box::new(RemoveLocal(vec![certificates(&inputs.directory)]))]);
    if facts.owns(UNIT_FILE) {
        let data = &inputs.spec.registry.registry_data_dir;
        let lines = recorded(inputs.spec).into_iter();
        let lines = lines.filter(|line| with_data || *line != Recorded::Exact(data.clone()));
        let only = lines.map(|line| line.expression()).collect::<Vec<_>>().join("|");
        let what = if with_data {
            format!("stop the registry and remove {data}")
        } else {
            "stop the registry".to_owned()
        };
        let variables = [("only", only.as_str()), ("data", if with_data { data } else { "" })];
        let action = Command::new(what, script(&variables, include_str!("remove_registry.sh")));
        let removed = HostWork::new(vec![Box::new(action)]).provides(slots::registry_removed_slot());
        remove = remove.on(&own.host.name, removed);
        work = work.needs(slots::registry_removed_slot());
    }
    forget = forget.on(CONTROL, work);
    vec![remove, forget]
}

#[cfg(test)]
mod tests {
    use crate::{base::shell::script, testing};

    const LIBRARY: &str = "kk_disown_only() { echo \"taken back $1\"; }; kk_fail() { return 1; }";

    /// Runs the script where systemctl ends so when it stops the unit, and when it is asked whether that runs.
    fn remove(stop: u8, is_active: u8) -> (bool, String) {
        let directory = tempfile::tempdir().unwrap();
        let systemctl = format!(
            "case \" $*\" in *' stop '*) exit {stop} ;; *is-active*) exit {is_active} ;; *) exit {stop} ;; esac"
        );
        testing::program(directory.path(), "systemctl", &systemctl);
        let text = script(&[("only", "x"), ("data", "")], include_str!("remove_registry.sh"));
        let output = testing::run_script(directory.path(), &format!("{LIBRARY}\n{text}"));
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    }

    #[test]
    fn a_removal_that_was_killed_is_taken_up_and_a_registry_that_does_not_stop_is_an_error() {
        let done = (true, "taken back x\n".to_owned());
        assert_eq!(remove(0, 3), done);
        assert_eq!(remove(5, 3), done, "the unit is gone already");
        assert_eq!(remove(1, 0), (false, String::new()), "it still runs");
    }
}
