//! Leftovers of another cluster on a host: its links, mounts and static pods would take part in this cluster.

use kk_engine::Question;

use crate::{base::findings::Findings, model::inputs::Inputs};

/// Kinds and names, as `leftovers.sh` prints them.
type Leftovers = Vec<(String, String)>;

pub(super) const LEFTOVERS: Question<Leftovers> =
    Question::new("leftovers", include_str!("leftovers.sh"), parse);

fn parse(printed: &str) -> Option<Leftovers> {
    let pair = |line: &str| {
        let (kind, name) = line.split_once('\t')?;
        Some((kind.to_owned(), name.to_owned()))
    };
    printed.lines().map(pair).collect()
}

/// kk cannot know who owns them, so it removes none of them.
pub(super) fn findings(inputs: &Inputs, found: &mut Findings) {
    for (host, facts) in inputs.nodes() {
        let answer = facts.answer(&LEFTOVERS);
        found.unanswered(host, &answer, "what other clusters left on it");
        let left = answer.answered().unwrap_or_default();
        let names = |kind: &str| -> Vec<&str> {
            left.iter().filter(|(of, _)| of == kind).map(|(_, name)| name.as_str()).collect()
        };
        let each = |command: &str, names: &[&str]| {
            names.iter().map(|name| format!("{command} {name}")).collect::<Vec<_>>().join("; ")
        };
        let (links, mounts, manifests) = (names("link"), names("mount"), names("manifest"));
        if !links.is_empty() {
            found.error(
                host,
                format!("network links of another pod network exist: {}", links.join(", ")),
                format!(
                    "if they are not needed, remove them on the host: {}",
                    each("ip link delete", &links)
                ),
            );
        }
        if !mounts.is_empty() {
            found.error(
                host,
                format!(
                    "pods of another cluster have left {} mounts below /var/lib/kubelet: {}",
                    mounts.len(),
                    first(&mounts)
                ),
                format!(
                    "if they are not needed, unmount them on the host: {}",
                    first_commands("umount", &mounts)
                ),
            );
        }
        if !manifests.is_empty() {
            found.error(
                host,
                format!("static pods of another cluster exist: {}", manifests.join(", ")),
                format!("the kubelet would start them; if they are not needed: {}", each("rm", &manifests)),
            );
        }
        let (chains, tables) = (names("chains"), names("table"));
        if !chains.is_empty() {
            // Only these chains, and the rules that jump to them.
            let names = chains.join("|");
            found.warning(
                host,
                format!("packet filter rules of another cluster exist: chains {}", chains.join(", ")),
                format!("they may drop packets of pods; on the host: iptables-save | grep -vE '^:({names})|-[Ajg] ({names})' | iptables-restore"),
            );
        }
        if !tables.is_empty() {
            found.warning(
                host,
                format!("packet filter tables of another cluster exist: {}", tables.join(", ")),
                format!("they may drop packets of pods; on the host: {}", each("nft delete table", &tables)),
            );
        }
    }
}

/// Number of names in a message; a cluster may have left hundreds.
const NAMED: usize = 3;

fn first(names: &[&str]) -> String {
    let more = if names.len() > NAMED { ", …" } else { "" };
    format!("{}{more}", names[..names.len().min(NAMED)].join(", "))
}

fn first_commands(command: &str, names: &[&str]) -> String {
    if names.len() > NAMED {
        return format!(
            "awk '$2 ~ \"^/var/lib/kubelet/\" {{ print $2 }}' /proc/mounts | sort -r | xargs -n 1 {command}"
        );
    }
    names.iter().map(|name| format!("{command} {name}")).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use kk_engine::Severity;

    use super::*;
    use crate::{
        commands::{create_cluster::capabilities, precheck::precheck},
        testing,
    };

    /// The output of the script on a host with these files.
    fn printed(files: &[&str]) -> String {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path().display().to_string();
        for name in [
            "sys/class/net/eth0",
            "sys/class/net/cni0",
            "sys/class/net/cali12ab",
            "etc/kubernetes/manifests/etcd.yaml",
        ]
        .iter()
        .chain(files)
        {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        fs::write(
            directory.path().join("mounts"),
            "tmpfs /var/lib/kubelet/pods/1/volumes/a tmpfs rw 0 0\n/dev/sda1 /var/lib/kubelet ext4 rw 0 0\ntmpfs /var/lib/kubelet/pods/1/volumes/a/b tmpfs rw 0 0\n",
        )
        .unwrap();
        testing::program(
            directory.path(),
            "iptables-save",
            "printf ':INPUT ACCEPT [0:0]\\n:CNI-FORWARD - [0:0]\\n:OLD_CILIUM_INPUT - [0:0]\\n:KUBE-SERVICES - [0:0]\\n:KUBE-SVC-1 - [0:0]\\n:cali-INPUT - [0:0]\\n'",
        );
        testing::program(directory.path(), "nft", "printf 'table ip filter\\ntable ip kube-proxy\\n'");
        let text = ["/sys/class/net", "/etc/kubernetes", "/etc/kubekey"]
            .into_iter()
            .fold(include_str!("leftovers.sh").to_owned(), |text, path| {
                text.replace(path, &format!("{here}{path}"))
            })
            .replace("/proc/mounts", &format!("{here}/mounts"));
        let output = testing::run_script(directory.path(), &text);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().replace(&here, "")
    }

    #[test]
    fn links_mounts_static_pods_and_rules_of_other_clusters_are_seen() {
        assert_eq!(
            printed(&[]),
            "link\tcali12ab\nlink\tcni0\nmount\t/var/lib/kubelet/pods/1/volumes/a/b\nmount\t/var/lib/kubelet/pods/1/volumes/a\n\
             manifest\t/etc/kubernetes/manifests/etcd.yaml\nchains\tKUBE-\nchains\tOLD_CILIUM_\nchains\tcali-\ntable\tip kube-proxy\n"
        );
        for own in ["etc/kubernetes/kubelet.conf", "etc/kubekey/owned"] {
            assert_eq!(printed(&[own]), "", "{own}");
        }
    }

    #[tokio::test]
    async fn what_would_take_part_in_this_cluster_is_refused_with_the_command_that_removes_it() {
        let spec = testing::sample("all-in-one.yaml");
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec.clone(), directory.path());
        let mut fresh = testing::fresh(&spec);
        let facts = fresh.facts.values_mut().next().unwrap();
        facts.reply(&LEFTOVERS, "link\tcni0\nlink\tflannel.1\nmount\t/var/lib/kubelet/a\nmanifest\t/m.yaml\nchains\tKUBE-\nchains\tcali-\ntable\tip kube-proxy\n");
        let inputs = session.create_inputs(&fresh).await.unwrap();
        let found = precheck(&capabilities(&spec), &inputs);
        for (severity, what, command) in [
            (Severity::Error, "exist: cni0, flannel.1", "ip link delete cni0; ip link delete flannel.1"),
            (
                Severity::Error,
                "1 mounts below /var/lib/kubelet: /var/lib/kubelet/a",
                "umount /var/lib/kubelet/a",
            ),
            (Severity::Error, "static pods of another cluster exist: /m.yaml", "rm /m.yaml"),
            (
                Severity::Warning,
                "chains KUBE-, cali-",
                "iptables-save | grep -vE '^:(KUBE-|cali-)|-[Ajg] (KUBE-|cali-)' | iptables-restore",
            ),
            (Severity::Warning, "ip kube-proxy", "nft delete table ip kube-proxy"),
        ] {
            let named = found.iter().any(|finding| {
                finding.severity == severity
                    && finding.message.contains(what)
                    && finding.hint.contains(command)
            });
            assert!(named, "{what}: {found:?}");
        }
    }
}
