//! Save the kubeconfig on this machine.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use kk_engine::{Action, Apply, Change, Context, Facts, Failure, HostWork, Run, Task};

use crate::{
    Target,
    modules::slots,
    vault::{sha256, write_private},
};

/// Largest kubeconfig that is believed, in bytes.
const LIMIT: u64 = 1 << 20;

/// `kubekey/<cluster>/kubeconfig`, with the API's address in place of the name that only the hosts know.
pub(super) fn task(target: &Target) -> Task {
    let host = target.spec.first_control_plane();
    let endpoint = &target.spec.control_plane_endpoint;
    let server = match endpoint.address {
        Some(address) if !endpoint.external_dns => format!("https://{address}:{}", endpoint.port),
        _ => format!("https://{}", target.endpoint()),
    };
    let save = Save {
        path: target.folder.join("kubeconfig"),
        from: format!("https://{}", target.endpoint()),
        to: server,
    };
    Task::new("save_kubeconfig", "Save kubeconfig")
        .on(&host.name, HostWork::new(vec![Box::new(save)]).needs(slots::initialised().key()))
}

#[derive(Clone)]
struct Save {
    path: PathBuf,
    from: String,
    to: String,
}

impl Save {
    /// The file beside it that says from which admin.conf it was made.
    fn source_sum(&self) -> PathBuf {
        self.path.with_file_name(".kubeconfig.source")
    }
}

impl Action for Save {
    fn check(&self, facts: &Facts) -> Change {
        let there = facts.files.get("/etc/kubernetes/admin.conf").map(|file| file.sha256.as_str());
        let taken = std::fs::read_to_string(self.source_sum()).ok();
        if self.path.exists() && there.is_some() && taken.as_deref() == there {
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
        let bytes = context.connection.download("/etc/kubernetes/admin.conf", LIMIT).await?;
        let sum = sha256(&bytes);
        let text =
            String::from_utf8(bytes).map_err(|_| Failure::new("/etc/kubernetes/admin.conf is no text"))?;
        let write = |path: &Path, text: &str| {
            write_private(path, text)
                .map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))
        };
        write(&self.path, &text.replace(&self.from, &self.to))?;
        write(&self.source_sum(), &sum)
    }
}
