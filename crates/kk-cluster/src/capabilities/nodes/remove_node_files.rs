//! Remove files that the components of the cluster wrote on a node.

use kk_engine::{HostWork, Kind, Task, actions::Command};

use crate::{
    base::shell::{EMPTY, script},
    model::inputs::Inputs,
};

/// It never crosses a file system: a volume that is still mounted keeps its data.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("remove_node_files", "Remove files of the node");
    for (host, facts) in inputs.nodes() {
        // If the directory existed before kk, other programs use CNI, too.
        let made_cni = facts.owned.has(Kind::Dir, "/var/lib/cni");
        let text = script(
            &[("cni", if made_cni { "yes" } else { "" })],
            &format!("{EMPTY}{}", include_str!("remove_node_files.sh")),
        );
        let remove = Command::new("remove files of the cluster", text);
        task = task.on(&host.name, HostWork::new(vec![Box::new(remove)]));
    }
    task
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::MetadataExt as _};

    use crate::{base::shell::script, testing};

    /// Cleans a node with these flags of its kubelet and this kubeconfig of root. Returns the output, and the copy of the
    /// kubeconfig, if any.
    fn clean(flags: &str, kubeconfig: &str) -> (String, Option<String>) {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path().display().to_string();
        let write = |path: &str, text: &str| {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("root/.kube/config", kubeconfig);
        write("etc/kubekey/owned", &format!("made\t/etc/other\nmade\t{here}/root/.kube/config\n"));
        let args =
            format!("Environment=\"KUBELET_KK_ARGS=--node-ip=192.0.2.1 {}\"\n", flags.replace("HERE", &here));
        write("etc/systemd/system/kubelet.service.d/10-kubeadm.conf", &args);
        fs::create_dir(directory.path().join("data")).unwrap();
        let mut text = script(&[("cni", "")], include_str!("remove_node_files.sh"));
        for path in ["/etc/systemd", "/etc/kubekey", "/etc/kubernetes", "/run/xtables.lock"] {
            text = text.replace(path, &format!("{here}{path}"));
        }
        let library = "empty() { :; }\nkk_note() { echo \"$*\"; }\n";
        let output = testing::run_script(directory.path(), &format!("{library}{text}"));
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8(output.stdout).unwrap().replace(&here, "");
        (said, fs::read_to_string(directory.path().join("root/.kube/config.before-delete")).ok())
    }

    const OWN: &str = "contexts:\n- context:\n    cluster: t\n";

    #[test]
    fn a_kubeconfig_to_which_other_clusters_were_added_is_kept() {
        assert_eq!(clean("", OWN), (String::new(), None));
        let both = format!("{OWN}- context:\n    cluster: other\n");
        let (said, kept) = clean("", &both);
        assert!(said.contains("/root/.kube/config has contexts of other clusters"), "{said}");
        assert_eq!(kept, Some(both));
    }

    #[test]
    fn that_of_a_user_is_kept_as_that_user() {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path();
        let (user, owner) = testing::other_user(here, "home");
        let (kube, victim) = (here.join("home/.kube"), here.join("victim"));
        fs::create_dir_all(here.join("etc/kubekey")).unwrap();
        fs::create_dir(&kube).unwrap();
        fs::write(kube.join("config"), format!("{OWN}- context:\n    cluster: other\n")).unwrap();
        for path in [&kube, &kube.join("config")] {
            std::os::unix::fs::chown(path, Some(owner), None).unwrap();
        }
        let config = kube.join("config").display().to_string();
        fs::write(
            here.join("etc/kubekey/owned"),
            format!("made\t{config}\t{user}\nmade\t{config}\tno-such-user\n"),
        )
        .unwrap();
        let mut text = script(&[("cni", "")], include_str!("remove_node_files.sh"));
        for path in ["/etc/systemd", "/etc/kubekey", "/etc/kubernetes", "/run/xtables.lock"] {
            text = text.replace(path, &format!("{}{path}", here.display()));
        }
        let text = format!("{}empty() {{ :; }}\n{text}", testing::library(here));
        let kept = kube.join("config.before-delete");
        let output = testing::run_script(here, &text);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(fs::symlink_metadata(&kept).unwrap().uid(), owner);
        if owner == 65534 {
            fs::remove_file(&kept).unwrap();
            fs::write(&victim, "root's").unwrap();
            std::os::unix::fs::symlink(&victim, &kept).unwrap();
            assert!(!testing::run_script(here, &text).status.success());
            assert_eq!(fs::read_to_string(&victim).unwrap(), "root's");
        }
    }

    #[test]
    fn a_directory_that_the_user_gave_to_the_kubelet_stays_and_is_named() {
        for (flags, named) in [
            ("--root-dir=HERE/data --v=2", true),
            ("--root-dir=HERE/none", false),
            ("--root-dir=/var/lib/kubelet", false),
        ] {
            assert_eq!(clean(flags, OWN).0.starts_with("/data, the directory"), named, "{flags}");
        }
    }
}
