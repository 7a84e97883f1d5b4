//! The lab as a whole: what `up`, `down` and `status` do. Only the kernel's own tables (control groups, mounts, namespaces) show
//! what runs, so a crash or a lost record changes nothing.

use std::fs;
use std::thread;

use anyhow::{Context, Result, anyhow, ensure};
use serde::Serialize;

use crate::base::disk_image::DiskImage;
use crate::cli::{Output, Up};
use crate::hosts::furnish::SudoUser;
use crate::hosts::settings::{Base, Settings};
use crate::hosts::{Host, cluster_file};
use crate::mirror::versions::Versions;
use crate::mirror::{publish, servers};
use crate::sys::instance::state_directory;
use crate::sys::paths::{self, Paths};
use crate::sys::run::{command, output};
use crate::sys::say::{self, Step};
use crate::sys::{cgroup, disk, inotify, mounts, net, packages};
use crate::{base, sys};

/// Boots the requested hosts, and ends all others unless `--host` names a single one.
pub(crate) fn up(paths: &Paths, args: &Up) -> Result<()> {
    sys::need_root()?;
    let versions = Versions::load(&paths.data)?;
    let kubernetes = versions.chosen(&args.kubernetes)?;
    let user =
        args.user.clone().zip(args.sudo_password.clone()).map(|(name, password)| SudoUser { name, password });
    let _lab = paths::lock_lab()?;
    let wanted = match &args.host {
        Some(name) => vec![Host::named(name)?],
        None => (1..=args.hosts).map(Host::new).collect(),
    };
    disk::ensure_free(&state_directory(), disk::per_host() * wanted.len() as u64, "the hosts")?;
    packages::install(packages::HOSTS)?;
    let settings = settings(paths, args)?;
    if !args.no_mirror && args.host.is_none() {
        publish::build(paths, &versions, &kubernetes, &args.with)?;
    }
    prepare(args, &wanted)?;
    if !args.no_mirror && args.host.is_none() {
        servers::start(paths)?;
    }
    boot(&wanted, &settings, user.as_ref(), args.fresh || args.host.is_some())?;
    if args.host.is_none() && !args.no_mirror {
        let file = args.config.clone().unwrap_or_else(|| paths::state("cluster.yaml"));
        cluster_file::write(
            &file,
            &cluster_file::text(paths, &versions, &kubernetes[0], &wanted, user.as_ref())?,
        )?;
        say::answer(&file.display().to_string());
    }
    Ok(())
}

/// Settings of the hosts to boot.
fn settings(paths: &Paths, args: &Up) -> Result<Settings> {
    let base = if args.real_kernel {
        let DiskImage { disk, kernel, initrd } = base::disk_image::ensure(paths, &args.suite)?;
        Base::Disk { disk, kernel, initrd }
    } else {
        Base::Tree(base::tree::ensure(paths, &args.suite)?)
    };
    Ok(Settings { base, second_network: args.networks > 1, cpus: args.cpus, delay_ms: args.delay })
}

/// Prepares everything around the hosts: removes leftovers, sets up network, key and kernel limit.
fn prepare(args: &Up, wanted: &[Host]) -> Result<()> {
    if !net::is_up()? {
        // No lab works without its whole network, so the existing parts are leftovers of a crash.
        clear()?;
    }
    let state = state_directory();
    fs::create_dir_all(&state).with_context(|| format!("cannot create {}", state.display()))?;
    net::up()?;
    inotify::raise()?;
    let key = paths::state("id_ed25519");
    // The public half is written last.
    if !paths::state("id_ed25519.pub").exists() {
        let _ = fs::remove_file(&key);
        let words = ["-q", "-t", "ed25519", "-N", "", "-C", "kk-lab", "-f"];
        output(command("ssh-keygen", words).arg(&key))?;
    }
    if args.host.is_none() {
        for host in Host::known()?.iter().filter(|host| !wanted.contains(host)) {
            say::progress(&format!("ending {}, which is not asked for", host.name));
            host.remove()?;
        }
    }
    Ok(())
}

fn boot(wanted: &[Host], settings: &Settings, user: Option<&SudoUser>, fresh: bool) -> Result<()> {
    let mut missing = Vec::new();
    for host in wanted {
        if fresh || !host.runs()? {
            missing.push(host);
        } else {
            host.wait_for_answer()?;
            say::progress(&format!("{} runs already", host.name));
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|host| host.name.as_str()).collect();
    let step = Step::begin(&format!("booting {}", names.join(", ")), "");
    all_well(thread::scope(|scope| {
        let boots: Vec<_> = missing.iter().map(|host| scope.spawn(|| host.boot(settings, user))).collect();
        let join = boots
            .into_iter()
            .map(|boot| boot.join().unwrap_or_else(|_| Err(anyhow!("a bug: the boot panicked"))));
        join.collect::<Vec<_>>()
    }))?;
    step.done();
    Ok(())
}

/// Ends one host, or the whole lab with all it left behind.
pub(crate) fn down(host: Option<&str>) -> Result<()> {
    sys::need_root()?;
    let _lab = paths::lock_lab()?;
    match host {
        Some(name) => Host::named(name)?.remove(),
        None => clear(),
    }
}

/// Ends a host as a power cut would, or boots it again as it was.
pub(crate) fn power(host: &str, on: bool) -> Result<()> {
    sys::need_root()?;
    let _lab = paths::lock_lab()?;
    let host = Host::named(host)?;
    if on { host.power_on() } else { host.power_off() }
}

/// Removes everything that can be the lab's, in an order that works from any state after a crash. If something cannot be removed,
/// the rest is removed all the same, and every failure is reported.
fn clear() -> Result<()> {
    let mut done: Vec<Result<()>> = Host::known()?.iter().map(Host::remove).collect();
    done.extend(cgroup::names()?.iter().map(|name| cgroup::remove(name)));
    done.extend([mounts::detach_all(&state_directory()), net::down(), inotify::restore()]);
    // If something failed, the records stay: a second `down` reads from them what is left to do.
    if done.iter().all(Result::is_ok) {
        done.push(mounts::remove_directory(&state_directory()));
    }
    all_well(done)
}

/// Errors: at least one failed; the error contains all failures.
fn all_well(results: impl IntoIterator<Item = Result<()>>) -> Result<()> {
    let failures: Vec<String> =
        results.into_iter().filter_map(Result::err).map(|error| format!("{error:#}")).collect();
    ensure!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}

#[derive(Debug, Serialize)]
struct Status {
    network: bool,
    mirror: bool,
    registry: bool,
    hosts: Vec<HostStatus>,
}

#[derive(Debug, Serialize)]
struct HostStatus {
    #[serde(flatten)]
    host: Host,
    running: bool,
}

/// Prints what runs; changes nothing.
pub(crate) fn status(form: Output) -> Result<()> {
    // Without root, the network namespace cannot be inspected and would be reported as down.
    sys::need_root()?;
    let mut hosts = Vec::new();
    for host in Host::known()? {
        hosts.push(HostStatus { running: host.runs()?, host });
    }
    let status = Status {
        network: net::is_up()?,
        mirror: servers::runs(servers::MIRROR)?,
        registry: servers::runs(servers::REGISTRY)?,
        hosts,
    };
    if form == Output::Json {
        say::answer(&serde_json::to_string_pretty(&status)?);
        return Ok(());
    }
    let word = |up: bool| if up { "up" } else { "down" };
    say::answer(&format!("network   {}", word(status.network)));
    say::answer(&format!("mirror    {:<5} {}", word(status.mirror), servers::mirror_url()));
    say::answer(&format!("registry  {:<5} {}", word(status.registry), servers::registry_address()));
    for HostStatus { host, running } in &status.hosts {
        say::answer(&format!("{:<9} {:<5} {}", host.name, word(*running), host.address));
    }
    Ok(())
}
