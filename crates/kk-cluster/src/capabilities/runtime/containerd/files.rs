//! The files that containerd reads at its start: configuration and unit.

use kk_engine::{Action, Facts, actions::File};
use serde_json::json;

use crate::{BuildError, inputs::Inputs};

/// Both files of one node.
pub(super) fn files(inputs: &Inputs, facts: &Facts) -> Result<Vec<Box<dyn Action>>, BuildError> {
    let unit = inputs.templates.render("containerd/containerd.service", &json!({}))?;
    Ok(vec![
        Box::new(File::text("/etc/containerd/config.toml", configuration(inputs, facts)?)),
        Box::new(File::text("/etc/systemd/system/containerd.service", unit)),
    ])
}

/// The configuration format that a version of containerd was released with: 2 for 1.x, 3 for 2.0 to 2.3, 4 from 2.4
/// on (containerd, `version/version.go`). Older formats are migrated at each start, with warnings.
fn format(version: &str) -> u8 {
    let mut numbers = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    match (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) {
        (0 | 1, _) => 2,
        (2, 0..=3) => 3,
        _ => 4,
    }
}

fn configuration(inputs: &Inputs, facts: &Facts) -> Result<String, BuildError> {
    // A JSON string is a TOML basic string, too.
    let quoted = |text: &str| json!(text).to_string();
    Ok(inputs.templates.render(
        "containerd/config.toml",
        &json!({
            "format": format(&inputs.versions.containerd),
            "root": quoted(&inputs.spec.registry.containerd_data_dir),
            "oom_score": if facts.can_raise_limits { -999 } else { 0 },
            "sandbox_image": quoted(&inputs.images.pause()),
            "restrict_oom": !facts.can_raise_limits,
            "systemd_cgroup": inputs.systemd_cgroups(),
        }),
    )?)
}

#[cfg(test)]
mod tests {
    use super::format;

    #[test]
    fn each_release_gets_its_own_format() {
        for (version, wanted) in
            [("1.6.2", 2), ("1.7.13", 2), ("2.0.0", 3), ("2.3.4", 3), ("2.4.2", 4), ("3.0.0", 4)]
        {
            assert_eq!(format(version), wanted, "{version}");
        }
    }
}
