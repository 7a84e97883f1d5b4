//! Action that joins a node with a discovery file, which contains the CA: nothing is trusted on first use, and there is no wait
//! for a signed `cluster-info`.

use std::{fmt::Write as _, sync::Arc};

use kk_config::Host;
use kk_connector::{Payload, quote};
use kk_engine::{Action, Apply, Change, Facts, Failure, Script, Slots};

use crate::{
    base::{
        host_layout::DROP_COPIES,
        shared_files::{self, SharedFiles},
        shell::script,
        slots,
    },
    model::{inputs::Inputs, kubeadm},
};

/// Reads the shared certificates from the slots.
type Certificates = Arc<dyn Fn(&Slots) -> Result<Arc<SharedFiles>, Failure> + Send + Sync>;
/// Creates the discovery kubeconfig for a CA.
type Discovery = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// `kubeadm join` of one host.
#[derive(Clone)]
pub(crate) struct Join {
    document: String,
    discovery: Discovery,
    certificates: Option<Certificates>,
    patches: Vec<Payload>,
    ignored: String,
}

impl Join {
    /// Joins a worker, or a control plane if certificates are added.
    pub(crate) fn new(inputs: &Inputs, host: &Host) -> Self {
        let (token, server) = (inputs.token.clone(), inputs.endpoint().url());
        Self {
            document: kubeadm::join_document(inputs, host, &inputs.token, "discovery.conf"),
            discovery: Arc::new(move |ca| kubeadm::discovery_kubeconfig(&server, ca, &token)),
            certificates: None,
            patches: kubeadm::join_patches(host).map(|(name, content)| payload(&name, content)).collect(),
            ignored: kubeadm::ignored_checks(inputs, host),
        }
    }

    /// Writes the cluster's shared files to the host first.
    pub(crate) fn with_certificates(
        mut self,
        read: impl Fn(&Slots) -> Result<Arc<SharedFiles>, Failure> + Send + Sync + 'static,
    ) -> Self {
        self.certificates = Some(Arc::new(read));
        self
    }

    fn script(&self, values: &Slots) -> Result<Script, Failure> {
        let ca = values
            .get(&slots::cluster_ca_slot())
            .ok_or_else(|| Failure::new("the CA of the cluster was not read"))?;
        let mut files =
            vec![file("join.yaml", self.document.clone()), file("discovery.conf", (self.discovery)(&ca))];
        files.extend(self.patches.iter().cloned());
        let mut text = String::new();
        if let Some(read) = &self.certificates {
            let shared = read(values)?;
            text.push_str(&put(&shared));
            files.extend(shared.names().filter_map(|name| shared.payload(name)));
        }
        text.push_str(&script(&[("ignored", &self.ignored)], include_str!("join.sh")));
        text.push_str(DROP_COPIES);
        Ok(Script { text, files, output: None })
    }
}

/// Each file is replaced atomically. kk does not record them, because they are removed with kubeadm's directory.
fn put(shared: &SharedFiles) -> String {
    let mut text = "pki=/etc/kubernetes/pki\nmkdir -p -m 755 \"$pki\"\n".to_owned();
    for name in shared.names() {
        let (name, mode) = (quote(name), shared_files::mode(name));
        let _ = writeln!(
            text,
            "rm -f \"$pki\"/.{name}.kk-new\n\
             (umask 077 && base64 -d pki.{name} >\"$pki\"/.{name}.kk-new)\n\
             chmod {mode} \"$pki\"/.{name}.kk-new && mv -f \"$pki\"/.{name}.kk-new \"$pki\"/{name}"
        );
    }
    text
}

fn file(name: &str, text: String) -> Payload {
    payload(name, text.into_bytes())
}

fn payload(name: &str, content: Vec<u8>) -> Payload {
    Payload { name: name.to_owned(), content: content.into() }
}

impl Action for Join {
    fn check(&self, _facts: &Facts) -> Change {
        Change::needed("join the cluster (kubeadm join)")
    }

    fn apply(&self, _facts: &Facts) -> Apply {
        let join = self.clone();
        Apply::Late(Box::new(move |values| join.script(values)))
    }

    fn transient(&self, _code: i32, stderr: &str) -> bool {
        stderr.contains("connection refused") || stderr.contains("i/o timeout")
    }

    fn hint(&self, stderr: &str) -> Option<String> {
        Some(
            if stderr.contains("connection refused")
                || stderr.contains("timeout")
                || stderr.contains("deadline")
            {
                "the host must reach the API: look at firewalls and at spec.controlPlaneEndpoint"
            } else {
                "see \"journalctl -u kubelet\" on the host; run again when it is repaired"
            }
            .to_owned(),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

    use crate::{
        base::{
            shared_files::{
                SharedFiles,
                tests::{pem, printed},
            },
            shell::script,
        },
        testing,
    };

    #[test]
    fn a_control_plane_gets_exactly_the_shared_files() {
        let directory = tempfile::tempdir().unwrap();
        let (here, pki) = (directory.path(), directory.path().join("kubernetes/pki"));
        let names = ["ca.crt", "ca.key", "sa.pub"];
        let printed = printed(&names);
        let Ok(shared) = SharedFiles::parse(&names, &printed) else { panic!("{printed}") };
        for name in names {
            let file = shared.payload(name).unwrap();
            fs::write(here.join(file.name), &file.content[..]).unwrap();
        }
        let text =
            super::put(&shared).replace("/etc/kubernetes", &here.join("kubernetes").display().to_string());
        assert!(testing::run_script(here, &text).status.success());
        assert_eq!(fs::read_dir(&pki).unwrap().count(), names.len());
        for (name, mode) in names.into_iter().zip([0o644, 0o600, 0o600]) {
            assert_eq!(fs::metadata(pki.join(name)).unwrap().permissions().mode() & 0o777, mode, "{name}");
        }
        assert_eq!(fs::read_to_string(pki.join("ca.key")).unwrap(), pem("ca.key"));
    }

    /// Runs `join.sh` with this script as `kubeadm`, below a directory that replaces the host's.
    fn join(directory: &Path, kubeadm: &str) -> (bool, String) {
        let program = |name: &str, text: &str| testing::program(directory, name, text);
        program("kubeadm", &format!("echo \"$@\" >>calls\n{kubeadm}"));
        program("systemctl", "echo \"$@\" >>calls");
        program("sleep", "exit 0");
        let here = directory.display().to_string();
        let text = script(&[("ignored", "A,B")], include_str!("join.sh"))
            .replace("/etc/kubernetes", &here)
            .replace("/var/lib/kubelet", &here);
        let status =
            testing::run_script(directory, &format!("kk_uptime() {{ cut -d . -f 1 /proc/uptime; }}\n{text}"));
        let calls = fs::read_to_string(directory.join("calls")).unwrap();
        (status.status.success(), calls + &String::from_utf8_lossy(&status.stderr))
    }

    /// The kubelet stops once, and kubeadm joins this many times.
    fn calls(joins: usize) -> String {
        format!("stop kubelet.service\n{}", CALL.repeat(joins))
    }

    const CALL: &str = "join --config join.yaml --ignore-preflight-errors=A,B\n";

    #[test]
    fn a_new_node_joins_once() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(join(directory.path(), "exit 0"), (true, calls(1)));
    }

    #[test]
    fn what_a_kubelet_without_a_certificate_left_goes_first() {
        let directory = tempfile::tempdir().unwrap();
        let conf = directory.path().join("kubelet.conf");
        fs::write(&conf, "    client-certificate: /no/such.pem\n").unwrap();
        assert_eq!(join(directory.path(), "exit 0"), (true, calls(1)));
        assert!(!conf.exists());
    }

    #[test]
    fn a_node_that_the_api_takes_for_ready_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let kubeadm = "[ \"$(wc -l <calls)\" -ge 4 ] || { echo 'a Node with name \"a\" and status \"Ready\" already exists' >&2; exit 1; }";
        let (joined, did) = join(directory.path(), kubeadm);
        assert!(joined && did.starts_with(&calls(3)), "{did}");
    }

    #[test]
    fn an_error_of_kubeadm_ends_it_and_is_shown() {
        let directory = tempfile::tempdir().unwrap();
        let (joined, did) = join(directory.path(), "echo 'error: no route' >&2; exit 3");
        assert_eq!((joined, did), (false, calls(1) + "error: no route\nkk-command: kubeadm join\n"));
    }
}
