//! Scripts that are stored as files next to their tasks, and the assignment of their variables.

use std::fmt::Write as _;

use kk_connector::quote;

/// The function `empty`, for scripts that empty directories.
pub(crate) const EMPTY: &str = include_str!("empty.sh");

/// The function `remove_chains`, for scripts that clean up packet filter rules.
pub(crate) const REMOVE_CHAINS: &str = include_str!("remove_chains.sh");

/// The function `ask`, for scripts that check whether something answers at a URL.
pub(crate) const ASK_URL: &str = include_str!("ask_url.sh");

/// A script, preceded by the assignment of its variables.
pub(crate) fn script(variables: &[(&str, &str)], text: &str) -> String {
    let mut script = String::new();
    for (name, value) in variables {
        let _ = writeln!(script, "{name}={}", quote(value));
    }
    script + text
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use super::{ASK_URL, EMPTY, REMOVE_CHAINS};
    use crate::testing;

    /// Whether something answers, on a host that has these programs, which end in this way.
    fn answers(programs: &str, url: &str, wget: &str, kubectl: &str) -> bool {
        let directory = tempfile::tempdir().unwrap();
        testing::program(directory.path(), "wget", wget);
        testing::program(directory.path(), "kubectl", kubectl);
        let there = format!("command() {{ case ' {programs} ' in *\" $2 \"*) ;; *) return 1 ;; esac; }}\n");
        let output = testing::run_script(directory.path(), &format!("{there}{ASK_URL}\nask {url}"));
        output.status.success()
    }

    #[test]
    fn an_error_of_a_server_is_an_answer_and_silence_is_none_whatever_program_asks() {
        let (page, api) = ("http://192.0.2.1:9153/", "https://192.0.2.1:443/livez");
        for (programs, url, said, code, answered) in [
            ("wget", page, "", 0, true),
            ("wget", page, "", 8, true),
            ("wget", page, "wget: server returned error: HTTP/1.1 404 Not Found", 1, true),
            ("wget", page, "wget: download timed out", 1, false),
            ("wget", page, "", 4, false),
            (
                "",
                page,
                "Error from server (NotFound): the server could not find the requested resource",
                1,
                true,
            ),
            ("", page, "connection refused", 1, false),
            // busybox wget may lack TLS.
            ("wget", api, "error: You must be logged in to the server (Unauthorized)", 1, true),
            ("wget", api, "dial tcp: i/o timeout", 1, false),
        ] {
            let ends = format!("echo '{said}' >&2; exit {code}");
            let (wget, kubectl) = if programs == "wget" && url == page {
                (ends.as_str(), "exit 70")
            } else {
                ("exit 0", ends.as_str())
            };
            assert_eq!(answers(programs, url, wget, kubectl), answered, "{programs} {url} {said} {code}");
        }
    }

    #[test]
    fn rules_of_others_stay_whatever_their_names() {
        let kept = "*filter\n:INPUT ACCEPT [0:0]\n:MY-KUBE-RULES - [0:0]\n:CNI-FORWARD - [0:0]\n\
            -A INPUT -m comment --comment \"no CNI-DN- here\" -j ACCEPT\n-A INPUT -j MY-KUBE-RULES\nCOMMIT\n";
        let ours = ":KUBE-SERVICES - [0:0]\n:CNI-HOSTPORT-DNAT - [0:0]\n:FLANNEL-FWD - [0:0]\n\
            -A INPUT -m comment --comment \"kubernetes\" -j KUBE-SERVICES\n-A KUBE-SERVICES -d 10.0.0.1/32 -j REJECT\n\
            -A FORWARD -j FLANNEL-FWD\n-A CNI-HOSTPORT-DNAT -p tcp -j CNI-DN-0123\n";
        let directory = tempfile::tempdir().unwrap();
        let program = |name: &str, text: &str| testing::program(directory.path(), name, text);
        fs::write(directory.path().join("saved"), kept.replace("COMMIT\n", ours) + "COMMIT\n").unwrap();
        program("iptables-save", "cat saved");
        program("iptables-restore", "cat >restored; cp restored saved");
        // The ip6tables of the test machine is neither read nor changed.
        program("ip6tables-save", "exit 1");
        let path = format!("{}:/usr/bin:/bin", directory.path().display());
        let calls = "remove_chains KUBE\nremove_chains FLANNEL\nremove_chains 'CNI-DN|CNI-HOSTPORT'\n";
        let status = Command::new("sh")
            .args(["-euc", &format!("{REMOVE_CHAINS}{calls}")])
            .current_dir(&directory)
            .env("PATH", path)
            .status()
            .unwrap();
        assert!(status.success());
        assert_eq!(fs::read_to_string(directory.path().join("restored")).unwrap(), kept);
    }

    #[test]
    fn a_directory_with_a_mount_below_it_is_not_emptied() {
        let directory = tempfile::tempdir().unwrap();
        let data = fs::canonicalize(&directory).unwrap().join("kubelet");
        let mounts = directory.path().join("mounts");
        for (mounted, emptied) in
            [("kubelet/pods/1/volumes/mine", false), ("kubelet-2/x", true), ("kubelet", true)]
        {
            fs::create_dir_all(data.join("pods/1/volumes/mine")).unwrap();
            let point = data.with_file_name(mounted);
            fs::write(&mounts, format!("36 35 98:0 / {} rw - ext4 /dev/sda1 rw\n", point.display())).unwrap();
            let empty = EMPTY.replace("/proc/self/mountinfo", mounts.to_str().unwrap());
            let script = format!("kk_fail() {{ return 1; }}\n{empty}\nempty {}", data.display());
            let done = Command::new("sh").args(["-euc", &script]).status().unwrap();
            assert_eq!(done.success(), emptied, "{mounted}");
            assert_eq!(data.join("pods").exists(), !emptied, "{mounted}");
        }
    }
}
