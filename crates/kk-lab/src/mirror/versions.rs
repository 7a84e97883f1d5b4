//! `tests/lab/versions.yaml`: the components to build, their versions, and their paths in the mirror.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Versions {
    /// The Go that the modules need, or a newer one.
    pub(crate) go: String,
    pub(crate) pause: String,
    components: BTreeMap<String, Component>,
    pub(crate) images: Vec<Image>,
}

/// How one component is built and published.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Component {
    versions: Vec<String>,
    seconds: u64,
    /// Built only when it is requested by name.
    #[serde(default)]
    on_demand: bool,
    #[serde(default)]
    cgo: bool,
    #[serde(default)]
    tags: String,
    #[serde(default)]
    ldflags: String,
    /// Debian packages that it consists of, instead of a Go module; its version is the release, unless `release` specifies it.
    #[serde(default)]
    packages: Vec<String>,
    /// Release of Debian that has the packages.
    release: Option<String>,
    /// Directory next to the programs → files of a module that are copied into it.
    #[serde(default)]
    module_files: BTreeMap<String, ModuleFiles>,
    #[serde(default)]
    files: Vec<MirrorFile>,
}

/// Files of a Go module other than its programs.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModuleFiles {
    pub(crate) module: String,
    /// A directory in it; its subdirectories are left out.
    pub(crate) directory: String,
}

/// One file of the mirror: a program as it is, or an archive of several.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MirrorFile {
    /// Name in the catalogue.
    pub(crate) component: String,
    /// Upstream's address without the scheme.
    pub(crate) path: String,
    pub(crate) program: Option<String>,
    /// Program → its path in the archive.
    #[serde(default)]
    pub(crate) archive: BTreeMap<String, String>,
}

/// Components whose programs tests without hosts run: they wait for these while the rest is still being built.
const RUN_BY_TESTS: [&str; 3] = ["kubernetes", "etcd", "helm"];

/// One image: programs of a component in an otherwise empty root, or above a slice of Debian; or all files of packages.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Image {
    pub(crate) repositories: Vec<String>,
    pub(crate) component: String,
    #[serde(default)]
    pub(crate) slice: bool,
    /// Program → its path in the image.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, String>,
    /// Needed only where there are several files.
    entrypoint: Option<String>,
}

impl Image {
    /// Path of the program that the image starts, from its root.
    pub(crate) fn entrypoint(&self) -> Result<String> {
        let path = self.entrypoint.as_ref().or_else(|| self.files.values().next());
        Ok(format!("/{}", path.context("an image without files")?))
    }
}

/// One component in one version, with every placeholder filled in.
#[derive(Debug, Clone)]
pub(crate) struct Build {
    pub(crate) component: String,
    pub(crate) version: String,
    /// Directory with go.mod and go.sum.
    pub(crate) module: PathBuf,
    pub(crate) seconds: u64,
    pub(crate) cgo: bool,
    pub(crate) tags: String,
    pub(crate) ldflags: String,
    pub(crate) packages: Vec<String>,
    pub(crate) release: String,
    pub(crate) module_files: BTreeMap<String, ModuleFiles>,
    pub(crate) files: Vec<MirrorFile>,
}

impl Versions {
    /// Errors: the file is missing or malformed, or a version has no Go module.
    pub(crate) fn load(data: &Path) -> Result<Self> {
        let path = data.join("versions.yaml");
        let hint = "hint: run kk-lab from its checkout, or name its tests/lab by KK_LAB_DATA";
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}\n{hint}", path.display()))?;
        serde_saphyr::from_str(&text).with_context(|| format!("cannot understand {}", path.display()))
    }

    /// The requested Kubernetes versions, or the default if none is requested. Errors: a requested version is not available.
    pub(crate) fn chosen(&self, asked: &[String]) -> Result<Vec<String>> {
        let known = self.kubernetes()?;
        let asked: Vec<String> =
            asked.iter().map(|version| version.trim_start_matches('v').to_owned()).collect();
        if let Some(unknown) = asked.iter().find(|version| !known.contains(version)) {
            bail!("Kubernetes {unknown} cannot be had here\nhint: the lab builds {}", known.join(" and "));
        }
        Ok(if asked.is_empty() { known.iter().take(1).cloned().collect() } else { asked })
    }

    /// All Kubernetes versions that can be built.
    pub(crate) fn kubernetes(&self) -> Result<&[String]> {
        Ok(&self.component("kubernetes")?.versions)
    }

    /// Version of a component that has one.
    pub(crate) fn version(&self, component: &str) -> Result<&str> {
        let versions = &self.component(component)?.versions;
        versions
            .first()
            .map(String::as_str)
            .with_context(|| format!("versions.yaml has no version of {component}"))
    }

    /// Everything to build, in this order: what tests without hosts run ([`RUN_BY_TESTS`]), the other components, further versions
    /// of Kubernetes, further versions of other components. Of what is built on demand it contains what `with` names: `COMPONENT`, or `COMPONENT=VERSION` for a version that is not the default. Errors: a component or version
    /// that is not known.
    pub(crate) fn builds(&self, data: &Path, kubernetes: &[String], with: &[String]) -> Result<Vec<Build>> {
        let (further, with): (Vec<_>, Vec<_>) = with.iter().cloned().partition(|name| name.contains('='));
        self.check_names(&with)?;
        let mut builds = Vec::new();
        let is_wanted = |(name, component): &(&String, &Component)| {
            *name != "kubernetes" && (!component.on_demand || with.contains(name))
        };
        let mut versions: Vec<(&str, &str)> = Vec::new();
        versions.extend(kubernetes.first().map(|version| ("kubernetes", version.as_str())));
        for (name, _) in self.components.iter().filter(is_wanted) {
            versions.push((name, self.version(name)?));
        }
        versions.sort_by_key(|(name, _)| !RUN_BY_TESTS.contains(name));
        versions.extend(kubernetes.iter().skip(1).map(|version| ("kubernetes", version.as_str())));
        for (name, version) in versions {
            builds.push(self.build(data, name, version)?);
        }
        for (name, version) in further.iter().filter_map(|one| one.split_once('=')) {
            let known = &self.component(name)?.versions;
            if !known.iter().any(|known| known == version) {
                bail!("{name} {version} cannot be had here\nhint: the lab builds {}", known.join(" and "));
            }
            builds.push(self.build(data, name, version)?);
        }
        Ok(builds)
    }

    /// The components and versions that are built on demand, except Kubernetes versions.
    pub(crate) fn on_demand(&self) -> Vec<String> {
        let mut all = Vec::new();
        for (name, component) in self.components.iter().filter(|(name, _)| *name != "kubernetes") {
            all.extend(component.on_demand.then(|| name.clone()));
            all.extend(component.versions.iter().skip(1).map(|version| format!("{name}={version}")));
        }
        all
    }

    /// The builds of these components.
    pub(crate) fn only(builds: &[Build], components: &[String]) -> Vec<Build> {
        builds.iter().filter(|build| components.contains(&build.component)).cloned().collect()
    }

    fn check_names(&self, components: &[String]) -> Result<()> {
        if let Some(unknown) = components.iter().find(|name| !self.components.contains_key(*name)) {
            let known: Vec<&str> = self.components.keys().map(String::as_str).collect();
            bail!("there is no component `{unknown}`\nhint: the lab builds {}", known.join(", "));
        }
        Ok(())
    }

    fn build(&self, data: &Path, name: &str, version: &str) -> Result<Build> {
        let component = self.component(name)?;
        let module = data.join(format!("{name}-{version}"));
        if component.packages.is_empty() && !module.join("go.sum").exists() {
            bail!("{name} {version} has no Go module: {} is missing", module.join("go.sum").display());
        }
        let mut files = component.files.clone();
        for file in &mut files {
            file.path = filled(&file.path, version);
            file.archive.values_mut().for_each(|path| *path = filled(path, version));
        }
        Ok(Build {
            component: name.to_owned(),
            version: version.to_owned(),
            module,
            seconds: component.seconds,
            cgo: component.cgo,
            tags: component.tags.clone(),
            ldflags: filled(&component.ldflags, version),
            packages: component.packages.clone(),
            release: component.release.clone().unwrap_or_else(|| version.to_owned()),
            module_files: component.module_files.clone(),
            files,
        })
    }

    fn component(&self, name: &str) -> Result<&Component> {
        self.components.get(name).with_context(|| format!("versions.yaml has no component `{name}`"))
    }
}

/// Go's and upstream's name of this machine's processor.
pub(crate) fn arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn filled(template: &str, version: &str) -> String {
    let minor = version.split('.').nth(1).unwrap_or_default();
    template.replace("{v}", version).replace("{minor}", minor).replace("{arch}", arch())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/lab")
    }

    #[test]
    fn every_version_of_the_data_file_has_its_module() {
        let versions = Versions::load(&data()).unwrap();
        let all = versions.components["kubernetes"].versions.clone();
        let builds = versions.builds(&data(), &all, &versions.on_demand()).unwrap();
        let expected: usize = versions.components.values().map(|component| component.versions.len()).sum();
        assert_eq!(builds.len(), expected);
        for build in builds {
            assert!(!build.ldflags.contains('{'), "{}: {}", build.component, build.ldflags);
        }
    }

    #[test]
    fn every_image_is_made_of_a_component_that_is_built() {
        let versions = Versions::load(&data()).unwrap();
        for image in &versions.images {
            assert!(image.component == "pause" || versions.version(&image.component).is_ok(), "{image:?}");
        }
    }

    #[test]
    fn images_of_the_full_payload_are_published() {
        let versions = Versions::load(&data()).unwrap();
        let mut published = Vec::new();
        for image in versions
            .images
            .iter()
            .filter(|image| !["kubernetes", "pause"].contains(&image.component.as_str()))
        {
            let mark = if image.files.is_empty() { "" } else { "v" };
            let version = versions.version(&image.component).unwrap();
            published.extend(image.repositories.iter().map(|name| format!("/{name}:{mark}{version}")));
        }
        let mut found = 0;
        for chart in fs::read_dir(data().join("ks-payload-full/charts")).unwrap() {
            let values = fs::read_to_string(chart.unwrap().path().join("values.yaml")).unwrap();
            let words = values.split(|letter: char| letter.is_whitespace() || "\"{},".contains(letter));
            for name in words.filter(|word| word.contains('/') && word.contains(':')) {
                assert!(
                    published.iter().any(|image| name.ends_with(image)),
                    "{name} is not among {published:?}"
                );
                found += 1;
            }
        }
        assert!(found >= 10, "only {found} images were found");
    }

    #[test]
    fn a_version_that_cannot_be_had_is_named() {
        let versions = Versions::load(&data()).unwrap();
        let error = versions.chosen(&["1.20.0".into()]).unwrap_err().to_string();
        assert!(error.contains("Kubernetes 1.20.0 cannot be had"), "{error}");
        let known = versions.version("kubernetes").unwrap();
        assert_eq!(versions.chosen(&[format!("v{known}")]).unwrap(), [known]);
        let error = versions.builds(&data(), &[], &["etcd=2.0.0".into()]).unwrap_err().to_string();
        assert!(error.contains("etcd 2.0.0 cannot be had"), "{error}");
    }

    #[test]
    fn programs_of_tests_are_built_first_and_further_versions_last() {
        let versions = Versions::load(&data()).unwrap();
        let kubernetes = versions.kubernetes().unwrap();
        let [first, .., last] = kubernetes else { panic!("only one version: {kubernetes:?}") };
        let builds = versions.builds(&data(), kubernetes, &["helm".into(), "etcd=3.6.15".into()]).unwrap();
        let names: Vec<String> =
            builds.iter().map(|build| format!("{} {}", build.component, build.version)).collect();
        assert_eq!(names[..3], [&*format!("kubernetes {first}"), "etcd 3.6.16", "helm 3.22.0"]);
        assert_eq!(names[names.len() - 2..], [&*format!("kubernetes {last}"), "etcd 3.6.15"]);
    }

    #[test]
    fn components_are_picked_by_name_and_an_unknown_one_is_named() {
        let versions = Versions::load(&data()).unwrap();
        let all = |with: &[String]| versions.builds(&data(), &versions.chosen(&[]).unwrap(), with);
        let builds = all(&[]).unwrap();
        let picked = Versions::only(&builds, &["etcd".into(), "kubernetes".into(), "etcd".into()]);
        let names: Vec<&str> = picked.iter().map(|build| build.component.as_str()).collect();
        assert_eq!(names, ["kubernetes", "etcd"]);
        let error = all(&["etcd".into(), "etdc".into()]).unwrap_err().to_string();
        assert!(error.contains("`etdc`") && error.contains("etcd, flannel"), "{error}");
        let has_registry = |builds: &[Build]| builds.iter().any(|build| build.component == "registry");
        assert!(!has_registry(&builds) && has_registry(&all(&["registry".into()]).unwrap()));
    }
}
