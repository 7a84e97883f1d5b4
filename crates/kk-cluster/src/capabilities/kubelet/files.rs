//! Writes the files of the kubelet's service: its unit, and the flags of kk and of kubeadm.

use kk_config::Host;
use kk_engine::{Action, Facts, actions::File};
use serde_json::json;

use super::sandbox_flag;
use crate::{base::error::BuildError, model::inputs::Inputs};

const UNIT: &str = "/etc/systemd/system/kubelet.service";
const FLAGS: &str = "/etc/systemd/system/kubelet.service.d/10-kubeadm.conf";

/// The settings that kubeadm writes from those in the cluster when a node joins.
const SETTINGS: &str = "/var/lib/kubelet/config.yaml";

/// The SHA-256 of an empty file.
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// Files that must not be newer than the start of a running kubelet.
pub(crate) const RESTARTS_AFTER: [&str; 4] = [UNIT, FLAGS, "/usr/local/bin/kubelet", SETTINGS];

/// Whether the settings of a kubelet are missing or empty: without them, it does not start.
pub(crate) fn lacks_settings(facts: &Facts) -> bool {
    facts.files.get(SETTINGS).is_none_or(|file| file.sha256 == EMPTY)
}

/// The files of one node.
pub(crate) fn files(inputs: &Inputs, host: &Host) -> Result<Vec<Box<dyn Action>>, BuildError> {
    Ok(vec![
        Box::new(File::text(UNIT, inputs.templates.render("kubelet/kubelet.service", &json!({}))?)),
        Box::new(flags_file(inputs, host)?),
        Box::new(sandbox_flag::follow_version(inputs)),
    ])
}

/// The file with the flags that kk sets, the address of the node among them.
pub(crate) fn flags_file(inputs: &Inputs, host: &Host) -> Result<File, BuildError> {
    let flags = json!({"args": flags(inputs, host)});
    Ok(File::text(FLAGS, inputs.templates.render("kubelet/10-kubeadm.conf", &flags)?))
}

/// The flags of one node, for a systemd `Environment=` line in double quotes.
fn flags(inputs: &Inputs, host: &Host) -> String {
    let mut address = host.internal_address.to_string();
    if let Some(second) = host.internal_address_v6 {
        address = format!("{address},{second}");
    }
    let mut flags = vec![format!("--node-ip={address}"), format!("--hostname-override={}", host.name)];
    flags.extend(inputs.spec.kubernetes.kubelet_args.iter().map(|(name, value)| format!("--{name}={value}")));
    // systemd.exec(5): in a quoted assignment these characters need a backslash, and % doubles.
    flags.join(" ").replace('\\', r"\\").replace('"', "\\\"").replace('%', "%%")
}
