//! Determines the user of etcd and its view of the host. etcd needs only its data, its keys and its ports.

use kk_engine::{Facts, Question, question};

use crate::{
    base::{findings::Findings, shell::script},
    model::inputs::Inputs,
};

/// Whether the user of etcd can access its files: a directory above them may be closed to other users.
pub(crate) const REACHES: Question<bool> = Question::new("etcd_reaches_data", "echo no", question::yes_or_no);

pub(super) fn question(inputs: &Inputs) -> Question<bool> {
    let data = [("data", inputs.spec.etcd.data_dir.as_str())];
    REACHES.with_snippet(script(&data, include_str!("reaches_data.sh")))
}

/// Why etcd has to run as root, if it has to.
fn why_root(inputs: &Inputs, facts: &Facts) -> Option<&'static str> {
    let etcd = &inputs.spec.etcd;
    if facts.answer(&REACHES).answered() == Some(false) {
        Some("its user has no access to a directory above its data, keys or binary")
    } else if etcd.port.min(etcd.peer_port) < 1024 {
        Some("its ports are below 1024")
    } else if etcd.extra_args.iter().any(|line| names_file(line)) {
        Some("spec.etcd.extraArgs refers to files that its user may not be able to read")
    } else {
        None
    }
}

fn names_file(line: &str) -> bool {
    let values = line.split_once('=').map_or("", |(_, values)| values);
    values.split(',').any(|value| value.trim_start_matches(['"', '\'', ' ']).starts_with('/'))
}

/// Whether etcd runs as its own user.
pub(super) fn has_own_user(inputs: &Inputs, facts: &Facts) -> bool {
    why_root(inputs, facts).is_none()
}

/// Whether a unit that writes into this directory may have its own view of the file system. Hosts on which root is restricted
/// refuse such a view, and a unit with such a view may be unable to write the directory.
pub(crate) fn has_own_view(facts: &Facts, directory: &str) -> bool {
    facts.can_raise_limits && !["/usr/", "/etc/", "/boot/"].iter().any(|system| directory.starts_with(system))
}

pub(super) fn findings(inputs: &Inputs, found: &mut Findings) {
    for (host, facts) in inputs.etcd_hosts() {
        found.unanswered(host, &facts.answer(&REACHES), "whether etcd's user can access its files");
        if let Some(why) = why_root(inputs, facts).filter(|_| inputs.command.is_create()) {
            found.adapted(host, format!("etcd runs as root: {why}"), "its own user would be safer");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use kk_engine::{Action, Apply};

    use super::*;
    use crate::{
        capabilities::etcd::{UNIT, files::files},
        testing,
    };

    /// The unit of etcd, and the number of findings, for these settings in the file and this answer of the host.
    async fn unit(settings: &str, reaches: &str, is_limited: bool) -> (String, usize) {
        let directory = tempfile::tempdir().unwrap();
        let spec = testing::spec(&format!(
            "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {{name: t}}\nspec:\n  hosts: [{{name: a, address: 192.0.2.1}}]\n  \
             roleGroups: {{etcd: [a], control-plane: [a], worker: [a]}}\n  etcd: {{{settings}}}\n"
        ));
        let mut probed = testing::fresh(&spec);
        let facts = probed.facts.get_mut("a").unwrap();
        facts.reply(&REACHES, reaches);
        facts.can_raise_limits = !is_limited;
        let session = testing::session(spec.clone(), directory.path());
        let inputs = session.create_inputs(&probed).await.unwrap();
        let facts = &probed.facts["a"];
        let mut found = Findings::default();
        findings(&inputs, &mut found);
        let files: Vec<Box<dyn Action>> = files(&inputs, &spec.hosts[0], facts).unwrap();
        let unit = files.iter().find_map(|file| match file.apply(facts) {
            Apply::Script(script) if script.text.contains(UNIT) => Some(script.files[0].content.clone()),
            _ => None,
        });
        (String::from_utf8_lossy(&unit.unwrap()).into_owned(), found.0.len())
    }

    #[tokio::test]
    async fn etcd_runs_as_its_user_unless_its_files_or_ports_are_only_roots() {
        for (settings, reaches, has_own_user) in [
            ("", "yes", true),
            ("extraArgs: ['ETCD_LISTEN_METRICS_URLS=http://192.0.2.1:2381']", "yes", true),
            ("extraArgs: ['ETCD_LOG_OUTPUTS=\"stderr,/var/log/etcd.log\"']", "yes", false),
            ("", "no", false),
            ("port: 379", "yes", false),
            ("peerPort: 380", "yes", false),
        ] {
            let (unit, found) = unit(settings, reaches, false).await;
            assert_eq!(unit.contains("\nUser=etcd\n"), has_own_user, "{settings} {reaches}\n{unit}");
            assert_eq!(unit.contains("\nUser=root\n"), !has_own_user, "{unit}");
            assert_eq!(found, usize::from(!has_own_user), "{settings} {reaches}");
            // Before each start, etcd becomes the owner of files that root has written, such as a restored snapshot.
            let gives = "chown -R -h etcd:etcd /var/lib/etcd/member\n";
            assert_eq!(unit.contains(gives), has_own_user, "{unit}");
        }
    }

    #[tokio::test]
    async fn the_unit_sees_all_files_where_root_may_not_do_all_or_its_data_is_among_those_of_the_system() {
        for (settings, is_limited, has_own_view) in
            [("", false, true), ("", true, false), ("dataDir: /usr/lib/etcd", false, false)]
        {
            let (unit, _) = unit(settings, "yes", is_limited).await;
            assert_eq!(unit.contains("ProtectSystem="), has_own_view, "{settings}\n{unit}");
            assert!(unit.contains("\nNoNewPrivileges=yes\nCapabilityBoundingSet=\n"), "{unit}");
        }
    }

    #[test]
    fn a_directory_above_the_data_that_is_closed_to_others_is_found() {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let above = directory.path().join("above");
        fs::create_dir(&above).unwrap();
        for (mode, data, answer) in [
            (0o755, "above/etcd", "yes\n"),
            (0o711, "above/etcd", "yes\n"),
            (0o1777, "above/new/etcd", "yes\n"),
            (0o750, "above/etcd", "no\n"),
            (0o700, "above/new/etcd", "no\n"),
            (0o700, "above", "yes\n"),
        ] {
            fs::set_permissions(&above, fs::Permissions::from_mode(mode)).unwrap();
            let data = directory.path().join(data).display().to_string();
            let text = script(&[("data", &data)], include_str!("reaches_data.sh"));
            let output = testing::run_script(directory.path(), &text);
            assert_eq!(String::from_utf8(output.stdout).unwrap(), answer, "{mode:o} {data}");
        }
    }
}
