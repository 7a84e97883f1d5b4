//! The two servers of the lab: kk-lab itself as the mirror, and Debian's docker-registry. Both run inside the lab's
//! network and in control groups of their own.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::mirror::tls;
use crate::sys::files::{finish, remove_if_there};
use crate::sys::paths::{self, Paths};
use crate::sys::run::{command, last_lines, output, succeeds};
use crate::sys::say::Step;
use crate::sys::{background, cgroup, net};

/// Name of the mirror's control group.
pub(crate) const MIRROR: &str = "mirror";
/// Name of the registry's control group.
pub(crate) const REGISTRY: &str = "registry";
const MIRROR_PORT: u16 = 8080;
const REGISTRY_PORT: u16 = 5000;
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn mirror_url() -> String {
    format!("http://{}:{MIRROR_PORT}", net::GATEWAY)
}

pub(crate) fn registry_address() -> String {
    format!("{}:{REGISTRY_PORT}", net::GATEWAY)
}

/// Whether the server of this name has a process.
pub(crate) fn runs(name: &str) -> Result<bool> {
    Ok(!cgroup::processes(name)?.is_empty())
}

/// Starts what does not run yet, and waits until both answer.
pub(crate) fn start(paths: &Paths) -> Result<()> {
    let mut started = Vec::new();
    if !runs(MIRROR)? {
        let program = std::env::current_exe().context("this program has no file")?;
        let address = format!("{}:{MIRROR_PORT}", net::GATEWAY);
        let mut command = net::inside(program, ["mirror", "serve", "--listen", &address]);
        command.env("KK_LAB_CACHE", &paths.cache);
        started.push((MIRROR, MIRROR_PORT, start_one(MIRROR, &command)?));
    }
    if !runs(REGISTRY)? {
        tls::ensure()?;
        let program = registry_program(paths)?;
        let config = paths::state("registry.yaml");
        fs::write(&config, registry_config(&paths.registry()))?;
        let command = net::inside(program, [OsStr::new("serve"), config.as_os_str()]);
        started.push((REGISTRY, REGISTRY_PORT, start_one(REGISTRY, &command)?));
    }
    started.into_iter().try_for_each(|(name, port, child)| wait_for(name, port, child))
}

fn log_file(name: &str) -> PathBuf {
    paths::state(&format!("{name}.log"))
}

fn start_one(name: &str, command: &Command) -> Result<Child> {
    // Remove a control group that a crash left behind.
    cgroup::remove(name)?;
    background::start(name, command, &log_file(name))
}

fn wait_for(name: &str, port: u16, mut child: Child) -> Result<()> {
    let begun = Instant::now();
    // Bash opens the port itself, so no further program is needed inside the network.
    let probe = format!("exec 3<>/dev/tcp/{}/{port}", net::GATEWAY);
    while !succeeds(&mut net::inside("bash", ["-c", &probe])) {
        if child.try_wait()?.is_some() || begun.elapsed() > PATIENCE {
            let said = fs::read_to_string(log_file(name)).unwrap_or_default();
            bail!(
                "the {name} does not start; its last words ({}):\n{}",
                log_file(name).display(),
                last_lines(&said)
            );
        }
        sleep(Duration::from_millis(30));
    }
    Ok(())
}

/// Where the unpacked package docker-registry is or will be.
pub(crate) fn registry_directory(paths: &Paths) -> PathBuf {
    paths.programs().join("docker-registry")
}

/// Debian's docker-registry, extracted from its package: an installation would also start a registry that is open to the whole
/// network.
fn registry_program(paths: &Paths) -> Result<PathBuf> {
    let directory = registry_directory(paths);
    let program = directory.join("usr/bin/docker-registry");
    if program.exists() {
        return Ok(program);
    }
    let _alone = paths.lock("docker-registry")?;
    if program.exists() {
        return Ok(program);
    }
    let step = Step::begin("fetching Debian's docker-registry", "");
    let unfinished = paths.unfinished().join("docker-registry");
    let tree = unfinished.join("tree");
    remove_if_there(&unfinished)?;
    fs::create_dir_all(&tree)?;
    let download =
        || output(command("apt-get", ["download", "-q", "docker-registry"]).current_dir(&unfinished));
    if download().is_err() {
        output(&mut command("apt-get", ["update", "-q"]))?;
        download().context("cannot fetch the package docker-registry")?;
    }
    let mut entries = fs::read_dir(&unfinished)?.flatten().map(|entry| entry.path());
    let package = entries.find(|path| path.extension().is_some_and(|extension| extension == "deb"));
    let package = package.context("apt-get downloaded no package")?;
    output(command("dpkg-deb", ["--extract"]).args([&package, &tree]))?;
    remove_if_there(&directory)?;
    finish(&tree, &directory)?;
    fs::remove_dir_all(&unfinished)?;
    step.done();
    Ok(program)
}

/// Read-only, because hosts pull from the cache, which the next lab uses, too.
fn registry_config(storage: &Path) -> String {
    let (certificate, key) = tls::server_files();
    format!(
        "version: 0.1\nlog: {{level: warn, accesslog: {{disabled: true}}}}\n\
         storage:\n  filesystem: {{rootdirectory: {}}}\n  maintenance: {{readonly: {{enabled: true}}}}\n\
         http:\n  addr: {}\n  tls: {{certificate: {}, key: {}}}\n",
        storage.display(),
        registry_address(),
        certificate.display(),
        key.display()
    )
}
