//! Remove etcd and its data.

use kk_engine::{HostWork, Task, actions::Command};

use crate::{
    base::{host_layout::ETCD_ENVIRONMENT, shell},
    model::inputs::Inputs,
};

/// Removes only etcd that kk has installed; another etcd on the host stays. The ownership record decides, not the role that the
/// file assigns to the host.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("remove_etcd", "Remove etcd");
    for (host, facts) in inputs.hosts() {
        if facts.owns(ETCD_ENVIRONMENT) {
            let remove = Command::new("stop etcd and remove its data", script(&inputs.spec.etcd.data_dir));
            task = task.on(&host.name, HostWork::new(vec![Box::new(remove)]));
        }
    }
    task
}

/// `wanted` is the data directory that the cluster file sets.
fn script(wanted: &str) -> String {
    shell::script(&[("wanted", wanted)], include_str!("remove_etcd.sh"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use kk_config::Role;

    use super::*;
    use crate::testing;

    /// Removes etcd whose files contain the directory `installed`, while the cluster file sets `wanted`. Returns the output, and
    /// which of the directories a and b still have a member.
    fn remove(installed: Option<(&str, &str)>, wanted: &str) -> (String, Vec<&'static str>) {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path().display().to_string();
        for name in ["a", "b"] {
            fs::create_dir_all(directory.path().join(name).join("member/wal")).unwrap();
        }
        if let Some((file, line)) = installed {
            fs::write(directory.path().join(file), format!("# Written by kk.\n{line}={here}/a\n")).unwrap();
        }
        testing::program(directory.path(), "systemctl", "exit 0");
        let text = script(&format!("{here}/{wanted}"))
            .replace("/etc/systemd/system/", &format!("{here}/"))
            .replace("/etc/etcd.env", &format!("{here}/etcd.env"));
        let note = "kk_note() { echo \"$*\"; }\n";
        let output = testing::run_script(directory.path(), &format!("{note}{text}"));
        assert!(output.status.success());
        let said = String::from_utf8(output.stdout).unwrap().replace(&here, "");
        let left = |name: &&str| directory.path().join(name).join("member").exists();
        (said.trim().to_owned(), ["a", "b"].into_iter().filter(left).collect())
    }

    #[test]
    fn the_data_is_where_the_member_was_installed_and_not_where_the_file_says_by_now() {
        let environment = Some(("etcd.env", "ETCD_DATA_DIR"));
        let stays =
            |name: &str| format!("/{name}/member is not of the etcd that was installed here, it stays");
        assert_eq!(remove(environment, "a"), (String::new(), vec!["b"]));
        assert_eq!(remove(environment, "b"), (stays("b"), vec!["b"]));
        assert_eq!(remove(environment, "c"), (String::new(), vec!["b"]));
        assert_eq!(remove(Some(("etcd.service", "RequiresMountsFor")), "b"), (stays("b"), vec!["b"]));
        assert_eq!(remove(None, "a"), (stays("a"), vec!["a", "b"]));
    }

    #[test]
    fn etcd_goes_from_hosts_whose_role_the_file_has_taken_away() {
        let mut spec = testing::sample("three-nodes.yaml");
        let host = spec.hosts.iter_mut().find(|host| host.has_role(&Role::Etcd)).unwrap();
        host.roles.remove(&Role::Etcd);
        let name = host.name.clone();
        let mut probed = testing::fresh(&spec);
        probed.facts.get_mut(&name).unwrap().owned = vec!["made\t/etc/etcd.env"].into();
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec, directory.path());
        let inputs = session.delete_inputs(&probed).unwrap();
        assert_eq!(task(&inputs).hosts.into_keys().collect::<Vec<_>>(), [name]);
    }
}
