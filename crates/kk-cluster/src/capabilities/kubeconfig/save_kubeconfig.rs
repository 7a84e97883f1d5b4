//! Save the kubeconfig on the control machine.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use kk_engine::{Action, Apply, Change, Context, Facts, Failure, HostWork, Run, Task};
use kk_util::{sha256, write_private};

use crate::{capabilities::control_plane, host_layout::ADMIN_CONF, inputs::Inputs, slots};

/// Largest kubeconfig that is believed, in bytes.
const LIMIT: u64 = 1 << 20;

/// `kubekey/<cluster>/kubeconfig`, with the API's address in place of the name that only the hosts know.
pub(super) fn task(inputs: &Inputs) -> Task {
    let host = inputs.api_host;
    let renews = |facts| control_plane::renews(inputs, host, facts, "admin.conf");
    let save = save(inputs, inputs.facts(host).is_some_and(renews));
    Task::new("save_kubeconfig", "Save kubeconfig")
        .on(&host.name, HostWork::new(vec![Box::new(save)]).needs(slots::initialised_slot()))
}

/// `is_old`: the one on the host is another one than the probe saw.
pub(super) fn save(inputs: &Inputs, is_old: bool) -> Save {
    let endpoint = &inputs.spec.control_plane_endpoint;
    let server = match inputs.endpoint_address() {
        Some(address) if !endpoint.external_dns => format!("https://{address}:{}", endpoint.port),
        _ => format!("https://{}", inputs.endpoint()),
    };
    Save {
        is_old,
        path: inputs.directory.join("kubeconfig"),
        source: super::source_sum(&inputs.directory),
        from: format!("https://{}", inputs.endpoint()),
        to: server,
    }
}

#[derive(Clone)]
pub(super) struct Save {
    /// This run makes another one on the host.
    is_old: bool,
    path: PathBuf,
    source: PathBuf,
    from: String,
    to: String,
}

impl Save {
    /// What the kubeconfig was made from. Without a load balancer the address changes while the first control plane is down.
    fn made_from(&self, sum: &str) -> String {
        format!("{sum} {}", self.to)
    }
}

impl Action for Save {
    fn check(&self, facts: &Facts) -> Change {
        let wanted = facts.files.get(ADMIN_CONF).map(|file| self.made_from(&file.sha256));
        let made_from = std::fs::read_to_string(&self.source).ok();
        if !self.is_old && self.path.exists() && wanted.is_some() && made_from == wanted {
            return Change::None;
        }
        Change::needed(format!("write {}", self.path.display()))
    }

    fn apply(&self, _facts: &Facts) -> Apply {
        Apply::Run(Arc::new(self.clone()))
    }
}

#[async_trait]
impl Run for Save {
    async fn run(&self, context: Context) -> Result<(), Failure> {
        let bytes = context.connection.download(ADMIN_CONF, LIMIT).await?;
        let sum = sha256(&bytes);
        let text =
            String::from_utf8(bytes).map_err(|_| Failure::new("/etc/kubernetes/admin.conf is not text"))?;
        let write = |path: &Path, text: &str| {
            write_private(path, text)
                .map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))
        };
        write(&self.path, &text.replace(&self.from, &self.to))?;
        write(&self.source, &self.made_from(&sum))
    }
}
