//! Reports blockers of KubeSphere before the first change.

use kk_config::{KubeSphere as Wanted, KubeVersion};

use super::{
    NAMESPACE,
    manifest::{DEPLOYED_BY, KK},
    state,
};
use crate::{
    base::{findings::Findings, supply::Installer},
    capabilities::etcd::{METRICS_PORT, watches_members},
    model::inputs::Inputs,
};

/// The minor versions of Kubernetes for which a release of KubeSphere was made: the prefix of its version, and the oldest and
/// newest minor version (KubeKey 3, `cmd/kk/pkg/version/kubesphere`).
const MADE_FOR: [(&str, u32, u32); 4] =
    [("v3.4.1", 21, 26), ("v3.4.0", 19, 26), ("v3.3.", 19, 24), ("v3.2.", 19, 22)];

pub(super) fn findings(inputs: &Inputs, wanted: &Wanted, found: &mut Findings) {
    let hint = "set spec.kubesphere.image to an image that contains a payload (`make image-ks` builds one; \
                see docs/kubesphere.md)";
    match &inputs.installer {
        Installer::None => {
            found.error(None, "KubeSphere is enabled, but no image of ks-installer is specified", hint);
        }
        Installer::Unusable(why) => found.error(None, format!("the image of ks-installer: {why}"), hint),
        Installer::Archive(archive) => {
            for (host, _) in inputs.control_planes() {
                let arch = inputs.arch(host);
                if !archive.architectures.contains(&arch) {
                    let message = format!("{} has no image for {}", archive.path.display(), arch.as_str());
                    found.error(host, message, "build the image for all architectures of the control planes");
                }
            }
        }
        Installer::Registry(_) => {}
    }
    if state::of(inputs).is_some_and(|state| state.is_of_others()) {
        found.error(
            None,
            "KubeSphere is installed, but not by kk: kk would apply the settings of the file, and remove \
             components that the file does not enable",
            format!(
                "to allow this: kubectl -n {NAMESPACE} annotate clusterconfiguration ks-installer \
                     {DEPLOYED_BY}={KK}; to leave it unchanged, set spec.kubesphere.enabled: false"
            ),
        );
    }
    let name = "ETCD_LISTEN_METRICS_URLS=";
    let line = inputs.spec.etcd.extra_args.iter().rev().find(|line| line.starts_with(name));
    let elsewhere =
        line.filter(|line| !line.contains(&format!(":{METRICS_PORT}")) || line.contains("//127."));
    if let Some(line) = elsewhere.filter(|_| watches_members(inputs.spec, wanted)) {
        found.warning(
            None,
            format!("spec.etcd.extraArgs has {line}, and Prometheus reads the metrics of etcd at port {METRICS_PORT}"),
            "remove the line, or add a URL with this port that the nodes reach",
        );
    }
    if let Some(version) = &wanted.version {
        out_of_range(version, inputs.spec.kubernetes.version, found);
    }
}

fn out_of_range(version: &str, kubernetes: KubeVersion, found: &mut Findings) {
    let Some((_, oldest, newest)) = MADE_FOR.iter().find(|(start, ..)| version.starts_with(start)) else {
        return;
    };
    if !(*oldest..=*newest).contains(&kubernetes.minor) {
        found.warning(
            None,
            format!(
                "KubeSphere {version} was made for Kubernetes v1.{oldest} to v1.{newest}, but the \
                     cluster has {kubernetes}"
            ),
            "make sure that the charts and images of the payload work with it",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_that_are_older_than_kubernetes_are_named() {
        for (version, kubernetes, warned) in [
            ("v3.4.1", "v1.36.0", true),
            ("v3.4.1", "v1.26.15", false),
            ("v3.4.1-stand-in", "v1.36.0", true),
            ("v4.1.3", "v1.36.0", false),
        ] {
            let mut found = Findings::default();
            out_of_range(version, kubernetes.parse().unwrap(), &mut found);
            assert_eq!(!found.0.is_empty(), warned, "{version} {kubernetes}");
        }
    }
}
