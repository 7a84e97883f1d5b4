//! `kk create manifest`: lists the contents that an offline bundle must have. It contacts no host and no server, except the
//! running cluster of `--kubeconfig`.

mod live;

use std::{collections::BTreeSet, net::Ipv4Addr, path::PathBuf};

use kk_cluster::{Options, Session, Settings};
use kk_config::{Arch, KubeVersion, Manifest, Spec};
use kk_connector::HostKeyPolicy;
use kk_engine::Warning;

use crate::args::{ArchName, CreateManifest};
use crate::error::{self, Error};
use crate::printer::{Printer, text};

use self::live::LiveCluster;
use super::{kubectl, load, new_file};

pub(super) async fn run(args: &CreateManifest, printer: &Printer) -> Result<(), Error> {
    let arches = args.arch.iter().map(|name| match name {
        ArchName::Amd64 => Arch::Amd64,
        ArchName::Arm64 => Arch::Arm64,
    });
    let mut arches: BTreeSet<Arch> = arches.collect();
    let live = match &args.kubeconfig {
        Some(kubeconfig) => {
            if let Some(warning) = kubectl::warning(kubeconfig) {
                printer.warning(warning);
            }
            Some(live::ask(kubeconfig).await?)
        }
        None => None,
    };
    let mut versions = args.with_kubernetes.clone();
    if let Some(live) = &live {
        arches.clone_from(&live.arches);
        versions.extend(&live.kubernetes);
    }
    let mut manifest: Option<Manifest> = None;
    let specs = specs(args, &versions, printer)?;
    if let Some(warning) = left_out(specs.iter().map(|spec| spec.kubernetes.version)) {
        printer.warning(warning);
    }
    for spec in specs {
        let more = session(spec, args.with_registry)?.manifest(&arches).await?;
        match &mut manifest {
            Some(manifest) => manifest.add(more),
            None => manifest = Some(more),
        }
    }
    let mut manifest = manifest.expect("clap asks for a file or a version, and a cluster that runs has one");
    if let Some(live) = live {
        for what in &live.left_out {
            printer.message(&format!("left out: {what}"));
        }
        add_live(&mut manifest, live, &args.with_kubernetes);
    }
    if args.output.as_os_str() == "-" {
        return printer.print_stdout(&manifest.text());
    }
    new_file::write(&args.output, &manifest.text(), args.overwrite)?;
    let file = args.output.display();
    let arches = manifest.arches.iter().map(|arch| arch.as_str()).collect::<Vec<_>>().join(" and ");
    printer.message(&format!(
        "wrote {file}: programs and {} for hosts of {arches}\nmake the bundle with: kk artifact export -m {file}",
        text::count(manifest.images.len(), "image"),
    ));
    Ok(())
}

/// The warning that an upgrade cannot use the bundle, because an upgrade skips no minor version.
fn left_out(versions: impl Iterator<Item = KubeVersion>) -> Option<Warning> {
    let minors: BTreeSet<u32> = versions.map(|version| version.minor).collect();
    let all = *minors.first()?..=*minors.last()?;
    let missing: Vec<String> =
        all.filter(|minor| !minors.contains(minor)).map(|minor| format!("1.{minor}")).collect();
    (!missing.is_empty()).then(|| Warning {
        message: format!(
            "an upgrade with this bundle is not possible: it lacks Kubernetes {}",
            missing.join(" and ")
        ),
        hint: Some(
            "an upgrade cannot skip a minor version: add a version of each to --with-kubernetes".to_owned(),
        ),
        place: None,
    })
}

/// A cluster for each version of Kubernetes.
fn specs(args: &CreateManifest, versions: &[KubeVersion], printer: &Printer) -> Result<Vec<Spec>, Error> {
    let Some(file) = &args.filename else {
        return versions.iter().map(|version| any_cluster(*version)).collect();
    };
    let loaded = load::file(file, args.with_kubernetes.first().copied())?;
    for warning in &loaded.warnings {
        printer.warning(error::warning(warning));
    }
    let mut specs = vec![loaded.spec];
    for version in args.with_kubernetes.iter().copied().skip(1) {
        let mut spec = specs[0].clone();
        spec.kubernetes.version = version;
        specs.push(spec);
    }
    Ok(specs)
}

/// Adds the contents of a running cluster, which has its own images. Without versions in `more`, the only default image that is
/// kept is pause, because it is in no container of a pod. With `more`, all default images are kept.
fn add_live(manifest: &mut Manifest, live: LiveCluster, more: &[KubeVersion]) {
    if more.is_empty() {
        manifest.images.retain(|image| image.path == "pause");
    }
    manifest.images.extend(live.images);
    if !live.containerd.is_empty() {
        manifest.components.insert("containerd", live.containerd);
    }
    manifest.operating_systems.extend(live.systems);
}

/// A cluster with all defaults. Its one host is a placeholder.
fn any_cluster(version: KubeVersion) -> Result<Spec, Error> {
    let mut spec = Spec::all_in_one("node1", Ipv4Addr::new(192, 0, 2, 1), version).map_err(Error::Config)?;
    spec.name = "offline".into();
    Ok(spec)
}

fn session(spec: Spec, with_registry: bool) -> Result<Session, Error> {
    let settings = Settings {
        workdir: PathBuf::from("kubekey"),
        templates: None,
        host_keys: HostKeyPolicy::Strict,
        options: Options { with_registry, ..Options::default() },
    };
    Ok(Session::open(spec, settings)?)
}
