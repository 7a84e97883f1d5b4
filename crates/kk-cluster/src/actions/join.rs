//! The action that joins a node by a discovery file, which holds the CA: nothing is trusted on first use, and no signed
//! `cluster-info` is waited for.

use std::{fmt::Write as _, sync::Arc};

use kk_config::Host;
use kk_connector::{Payload, quote};
use kk_engine::{Action, Apply, Change, Facts, Failure, Script, Slots};

use crate::{host_layout::DROP_COPIES, inputs::Inputs, kubeadm, slots};

/// Reads the Base64 text of the shared certificates from the slots.
type Certificates = Arc<dyn Fn(&Slots) -> Result<String, Failure> + Send + Sync>;
/// Makes the discovery kubeconfig for a CA.
type Discovery = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// `kubeadm join` of one host.
#[derive(Clone)]
pub(crate) struct Join {
    document: String,
    discovery: Discovery,
    certificates: Option<Certificates>,
    ignored: String,
}

impl Join {
    /// A worker, or a control plane when it gets certificates.
    pub(crate) fn new(inputs: &Inputs, host: &Host) -> Self {
        let (token, endpoint) = (inputs.token.clone(), inputs.endpoint());
        Self {
            document: kubeadm::join_document(inputs, host, &inputs.token, "discovery.conf"),
            discovery: Arc::new(move |ca| kubeadm::discovery_kubeconfig(&endpoint, ca, &token)),
            certificates: None,
            ignored: kubeadm::ignored_checks(inputs, host),
        }
    }

    /// Puts the cluster's CAs on the host first.
    pub(crate) fn with_certificates(
        mut self,
        read: impl Fn(&Slots) -> Result<String, Failure> + Send + Sync + 'static,
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
        let mut text = String::new();
        if let Some(read) = &self.certificates {
            files.push(file("certificates", read(values)?));
            text.push_str(
                "mkdir -p -m 755 /etc/kubernetes/pki\nbase64 -d certificates | tar -C /etc/kubernetes/pki -xf - --no-same-owner\n",
            );
        }
        let ignored = quote(&self.ignored);
        let _ = write!(
            text,
            "kk_do kubeadm join --config join.yaml --ignore-preflight-errors={ignored}\n{DROP_COPIES}"
        );
        Ok(Script { text, files, output: None })
    }
}

fn file(name: &str, text: String) -> Payload {
    Payload { name: name.to_owned(), content: text.into_bytes().into() }
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
