//! The files that containerd reads at its start: configuration and unit.

use kk_artifact::Component;
use kk_engine::{Action, Facts, actions::File};
use serde_json::json;

use super::{immutable::CONFIG, registries::credentials};
use crate::{base::error::BuildError, model::inputs::Inputs};

/// Both files of one node.
pub(super) fn files(inputs: &Inputs, facts: &Facts) -> Result<Vec<Box<dyn Action>>, BuildError> {
    let unit = inputs.templates.render("containerd/containerd.service", &json!({}))?;
    let mut configured = File::text(CONFIG, configuration(inputs, facts)?);
    if !auths(inputs).is_empty() {
        configured = configured.mode(0o600);
    }
    Ok(vec![Box::new(configured), Box::new(File::text("/etc/systemd/system/containerd.service", unit))])
}

/// The configuration format that a version of containerd was released with: 2 for 1.x, 3 for 2.0 to 2.3, 4 since 2.4 (containerd,
/// `version/version.go`). containerd migrates older formats at each start, with warnings.
fn format(version: &str) -> u8 {
    let mut numbers = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    match (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) {
        (0 | 1, _) => 2,
        (2, 0..=3) => 3,
        _ => 4,
    }
}

/// The credentials that this version of containerd reads from its configuration.
fn auths(inputs: &Inputs) -> Vec<serde_json::Value> {
    if format(&inputs.versions.of(Component::Containerd)) == 2 {
        credentials(inputs.spec)
    } else {
        Vec::new()
    }
}

fn configuration(inputs: &Inputs, facts: &Facts) -> Result<String, BuildError> {
    // A JSON string is also a TOML basic string.
    let quoted = |text: &str| json!(text).to_string();
    Ok(inputs.templates.render(
        "containerd/config.toml",
        &json!({
            "auths": auths(inputs),
            "format": format(&inputs.versions.of(Component::Containerd)),
            "root": quoted(&inputs.spec.registry.containerd_data_dir),
            "oom_score": if facts.can_raise_limits { -999 } else { 0 },
            "sandbox_image": quoted(&inputs.images.of(Component::Pause)),
            "restrict_oom": !facts.can_raise_limits,
            "systemd_cgroup": inputs.systemd_cgroups(),
        }),
    )?)
}

#[cfg(test)]
mod tests {
    use super::{configuration, files, format};
    use crate::testing;

    #[test]
    fn each_release_gets_its_own_format() {
        for (version, wanted) in
            [("1.6.2", 2), ("1.7.13", 2), ("2.0.0", 3), ("2.3.4", 3), ("2.4.2", 4), ("3.0.0", 4)]
        {
            assert_eq!(format(version), wanted, "{version}");
        }
    }

    #[tokio::test]
    async fn only_containerd_1_has_credentials_in_its_configuration() {
        for (version, there) in [("1.7.13", true), ("2.3.4", false)] {
            let spec = testing::spec(&format!(
                "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {{name: t}}\nspec:\n  hosts:\n  \
                 - {{name: a, address: 192.0.2.1}}\n  roleGroups: {{etcd: [a], control-plane: [a], worker: [a]}}\n  \
                 components: {{containerd: {version}}}\n  \
                 registry: {{auths: {{hub.local: {{username: u, password: p}}}}}}\n"
            ));
            let directory = tempfile::tempdir().unwrap();
            let fresh = testing::fresh(&spec);
            let session = testing::session(spec, directory.path());
            let inputs = session.create_inputs(&fresh).await.unwrap();
            let text = configuration(&inputs, &fresh.facts["a"]).unwrap();
            let section = "[plugins.\"io.containerd.grpc.v1.cri\".registry.configs.\"hub.local\".auth]\n  \
                           username = \"u\"\n  password = \"p\"\n";
            assert_eq!(text.contains(section), there, "{text}");
            let kk_engine::Apply::Script(script) =
                files(&inputs, &fresh.facts["a"]).unwrap()[0].apply(&fresh.facts["a"])
            else {
                panic!("a file is written by a script")
            };
            assert_eq!(script.text.contains("600"), there, "{}", script.text);
        }
    }
}
