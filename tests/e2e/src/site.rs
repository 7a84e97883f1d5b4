//! The directory on the control machine from which `kk` is run: a cluster file, a home directory (for `known_hosts`) and kk's
//! working directory.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use kk_test_common::empty;
use serde_json::Value;

use crate::context::Context;
use crate::lab::SudoUser;

/// Where `kk` is run from, and for which hosts.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) dir: PathBuf,
    /// The cluster file.
    pub(crate) file: PathBuf,
    /// Names of the hosts in the cluster file, in its order; the first is the control plane.
    pub(crate) hosts: Vec<String>,
}

impl Site {
    /// Boots fresh hosts and makes a site for them in `dir`.
    pub(crate) fn fresh(ctx: &Context<'_>, dir: &Path, hosts: u8, user: Option<SudoUser>) -> Result<Self> {
        Self::booted(ctx, dir, hosts, user, &[])
    }

    /// As [`Site::fresh`], with further arguments of `kk-lab up`.
    pub(crate) fn booted(
        ctx: &Context<'_>,
        dir: &Path,
        hosts: u8,
        user: Option<SudoUser>,
        more: &[&str],
    ) -> Result<Self> {
        ctx.shared.replace(None);
        empty(dir)?;
        fs::create_dir_all(dir.join("home"))?;
        let file = dir.join("cluster.yaml");
        ctx.lab_up(hosts, &file, user, more)?;
        let hosts = (1..=hosts).map(|number| format!("node{number}")).collect();
        Ok(Self { dir: dir.to_owned(), file, hosts })
    }

    /// Home directory of `kk`.
    pub(crate) fn home(&self) -> PathBuf {
        self.dir.join("home")
    }

    /// Working directory of `kk`.
    pub(crate) fn workdir(&self) -> PathBuf {
        self.dir.join("kubekey")
    }

    /// The host that runs the control plane.
    pub(crate) fn control_plane(&self) -> &str {
        &self.hosts[0]
    }

    /// The cluster file's content.
    pub(crate) fn read(&self) -> Result<Value> {
        let text = fs::read_to_string(&self.file)?;
        serde_saphyr::from_str(&text).with_context(|| format!("{} is no YAML", self.file.display()))
    }

    /// The same site with another cluster file in the same directory.
    pub(crate) fn variant(&self, name: &str, change: impl FnOnce(&mut Value)) -> Result<Self> {
        let mut content = self.read()?;
        change(&mut content);
        let site = Self { file: self.dir.join(format!("{name}.yaml")), ..self.clone() };
        write_private(&site.file, &serde_saphyr::to_string(&content)?)?;
        Ok(site)
    }
}

/// The entry of a host in a cluster file. Panics if the host has no entry: the lab wrote the file.
pub(crate) fn host_entry<'a>(cluster: &'a mut Value, name: &str) -> &'a mut Value {
    let hosts = cluster["spec"]["hosts"].as_array_mut().into_iter().flatten();
    hosts.into_iter().find(|host| host["name"] == name).expect("the lab's file names all its hosts")
}

/// Lets the name of the API resolve to a control plane, as in a cluster of several control planes without a load balancer.
pub(crate) fn use_control_plane(cluster: &mut Value, name: &str) {
    let address = host_entry(cluster, name)["address"].clone();
    cluster["spec"]["controlPlaneEndpoint"]["address"] = address;
}

/// Leaves only these hosts in a cluster file.
pub(crate) fn keep_hosts(cluster: &mut Value, names: &[&String]) {
    if let Some(hosts) = cluster["spec"]["hosts"].as_array_mut() {
        hosts.retain(|host| names.iter().any(|name| host["name"] == name.as_str()));
    }
}

/// All files in a directory and the directories in it; none where it is not there.
pub(crate) fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            files.extend(files_below(&entry.path()));
        } else {
            files.push(entry.path());
        }
    }
    files
}

/// Writes a file that may hold a password.
fn write_private(path: &Path, text: &str) -> Result<()> {
    let _ = fs::remove_file(path);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
}
