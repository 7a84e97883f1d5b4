//! Contents that an offline bundle for a cluster must have.

use std::collections::{BTreeMap, BTreeSet};

use kk_artifact::Component;
use kk_config::{Addon, Arch, Components, Manifest, ManifestFile, ManifestSource};

use super::session::Session;
use crate::base::{error::BuildError, supply::source_in_manifest};

impl Session {
    /// The needs of the hosts in the file, and nothing else. No host is contacted: a host without an architecture in the file may
    /// have any of `arches`.
    ///
    /// # Errors
    /// A version is unknown, or a manifest that names images cannot be fetched.
    pub async fn manifest(&self, arches: &BTreeSet<Arch>) -> Result<Manifest, BuildError> {
        refuse_open_versions(&self.spec.addons)?;
        let nothing = self.nothing();
        let inputs = self.create_inputs(&nothing).await?;
        let mut all: BTreeSet<Arch> = self.spec.hosts.iter().filter_map(|host| host.arch).collect();
        if self.spec.hosts.iter().any(|host| host.arch.is_none()) {
            all.extend(arches);
        }
        let mut components: BTreeMap<&'static str, BTreeSet<String>> = BTreeMap::new();
        for (_, program) in inputs.requirements.programs.values().flatten() {
            let key = program.version_key();
            if Components::KEYS.contains(&key) {
                components.entry(key).or_default().insert(inputs.versions.of(*program));
            }
        }
        if self.spec.own_registry().is_some() || inputs.options.with_registry {
            let registry = Component::Registry;
            components.entry(registry.version_key()).or_default().insert(inputs.versions.of(registry));
        }
        if let Some(problem) = inputs.published.problems().next() {
            return Err(BuildError::local(problem.message.clone(), problem.hint.clone()));
        }
        for component in inputs.published.components() {
            components.entry(component.version_key()).or_default().insert(inputs.versions.of(component));
        }
        let names = inputs.requirements.images.values().flatten().map(|(_, name)| name);
        let images = names.filter_map(|name| inputs.images.upstream(name)).collect();
        Ok(Manifest {
            name: self.spec.name.clone(),
            arches: all,
            kubernetes: [self.spec.kubernetes.version].into(),
            components,
            images,
            charts: inputs
                .addons
                .iter()
                .filter_map(|wanted| wanted.addon.chart.as_ref())
                .map(source_in_manifest)
                .collect(),
            manifests: manifests(&self.spec.addons),
            operating_systems: Vec::new(),
            registry: self.spec.registry.clone(),
            download: self.spec.download.clone(),
        })
    }
}

/// A bundle needs exact versions, and this command queries no repository for the newest version.
fn refuse_open_versions(addons: &[Addon]) -> Result<(), BuildError> {
    let is_open = |addon: &&Addon| addon.chart.as_ref().is_some_and(|chart| chart.is_open);
    let names: Vec<&str> = addons.iter().filter(is_open).map(|addon| addon.name.as_str()).collect();
    if names.is_empty() {
        return Ok(());
    }
    Err(BuildError::config(
        format!(
            "a bundle needs exact versions, and these addons have a chart without one: {}",
            names.join(", ")
        ),
        "set `version` of their charts",
    ))
}

/// The addons' files with objects, and with values. If two have the same name, a number is added.
fn manifests(addons: &[Addon]) -> BTreeSet<ManifestFile> {
    let values = addons.iter().filter_map(|addon| addon.chart.as_ref()?.values_file.as_ref());
    let values = values.filter(|source| matches!(source, ManifestSource::Url { .. }));
    let sources: BTreeSet<&ManifestSource> =
        addons.iter().flat_map(|addon| &addon.manifests).chain(values).collect();
    let mut names = BTreeSet::new();
    let mut file = |source: &ManifestSource| {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.+".contains(c) { c } else { '-' };
        let name: String = source.file_name().trim_start_matches('.').chars().map(plain).take(60).collect();
        let name = if name.is_empty() { "objects.yaml".to_owned() } else { name };
        let numbered = (2..).map(|number| format!("{number}-{name}"));
        let name = std::iter::once(name.clone()).chain(numbered).find(|name| names.insert(name.clone()));
        ManifestFile { name: name.expect("numbers do not end"), source: source.clone() }
    };
    sources.into_iter().map(&mut file).collect()
}

#[cfg(test)]
mod tests {
    use kk_config::Arch;

    use crate::testing;

    #[tokio::test]
    async fn it_holds_what_the_cluster_needs_and_nothing_else() {
        let mut spec = testing::sample("three-nodes.yaml");
        (spec.hosts[0].arch, spec.registry.private_registry) = (Some(Arch::Arm64), Some("hub.local".into()));
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec, directory.path());
        let manifest = session.manifest(&[Arch::Amd64].into()).await.unwrap();
        assert_eq!(Vec::from_iter(&manifest.arches), [&Arch::Amd64, &Arch::Arm64]);
        let programs: Vec<_> = manifest.components.keys().copied().collect();
        assert_eq!(programs, ["cni", "containerd", "crictl", "etcd", "runc"]);
        let images: Vec<_> = manifest.images.iter().map(kk_config::ImageName::repository).collect();
        assert_eq!(
            images,
            [
                "docker.io/flannel/flannel",
                "docker.io/flannel/flannel-cni-plugin",
                "registry.k8s.io/coredns/coredns",
                "registry.k8s.io/kube-apiserver",
                "registry.k8s.io/kube-controller-manager",
                "registry.k8s.io/kube-proxy",
                "registry.k8s.io/kube-scheduler",
                "registry.k8s.io/pause",
            ]
        );
        assert!(!directory.path().join("sample").exists(), "nothing is written for a question");
    }

    #[tokio::test]
    async fn charts_manifests_and_helm_are_in_it_where_addons_ask_for_them() {
        let mut spec = testing::sample("all-in-one.yaml");
        spec.addons = testing::addons(
            "[{name: a, sources: {chart: {name: app, repo: 'https://charts.example', version: 1.2.3}}}, \
             {name: b, sources: {yaml: {path: ['https://files.example/x/all.yaml?a=b', 'dir/all.yaml']}}}]",
        );
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec, directory.path());
        let manifest = session.manifest(&[Arch::Amd64].into()).await.unwrap();
        let charts: Vec<_> = manifest.charts.iter().map(ToString::to_string).collect();
        assert_eq!(charts, ["app 1.2.3 of https://charts.example"]);
        let files: Vec<_> =
            manifest.manifests.iter().map(|file| (&*file.name, file.source.origin())).collect();
        assert_eq!(files, [("2-all.yaml", "dir/all.yaml"), ("all.yaml", "https://files.example/x/all.yaml")]);
        assert!(manifest.text().contains("https://files.example/x/all.yaml?a=b"), "what the export asks for");
        assert!(manifest.components.contains_key("helm"));
        assert_eq!(kk_config::load_manifest("written", &manifest.text()).unwrap().0.charts, manifest.charts);
    }

    #[tokio::test]
    async fn a_chart_without_a_version_is_refused_and_values_of_a_server_are_in_it() {
        let mut spec = testing::sample("all-in-one.yaml");
        let chart = "repo: 'https://charts.example', valuesFile: 'https://files.example/values.yaml'";
        let addons = format!("[{{name: a, sources: {{chart: {{name: app, {chart}, version: 1.2.3}}}}}}]");
        spec.addons = testing::addons(&addons);
        let directory = tempfile::tempdir().unwrap();
        let manifest = testing::session(spec.clone(), directory.path()).manifest(&[Arch::Amd64].into()).await;
        let manifest = manifest.unwrap();
        assert_eq!(manifest.manifests.first().unwrap().source.origin(), "https://files.example/values.yaml");
        spec.addons = testing::addons(&addons.replace(", version: 1.2.3", ""));
        let session = testing::session(spec, directory.path());
        let error = session.manifest(&[Arch::Amd64].into()).await.unwrap_err();
        assert!(error.to_string().contains("a chart without one: a"), "{error}");
    }

    #[tokio::test]
    async fn what_a_setting_leaves_out_is_not_in_it() {
        let mut spec = testing::sample("all-in-one.yaml");
        spec.kubernetes.disable_kube_proxy = true;
        spec.network.plugin = kk_config::NetworkPlugin::None;
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec, directory.path());
        let manifest = session.manifest(&[Arch::Amd64].into()).await.unwrap();
        let images: Vec<_> = manifest.images.iter().map(|image| image.path.as_str()).collect();
        let left =
            ["coredns/coredns", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "pause"];
        assert_eq!(images, left);
    }
}
