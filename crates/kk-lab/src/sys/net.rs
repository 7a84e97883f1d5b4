//! The lab's network: a namespace with one bridge. It has no way out, so nothing of the lab can leave the
//! machine; the mirror, the registry and every command of `enter` run inside it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::sys::run::{command, output};
use crate::sys::{instance, mounts};

/// The bridge's own address: mirror, registry, and the hosts' gateway, which has no way out.
pub(crate) const GATEWAY: &str = "172.30.0.1";
/// Bridge that every host is plugged into.
pub(crate) const BRIDGE: &str = "br0";
/// Bridge of the second network.
pub(crate) const SECOND_BRIDGE: &str = "br1";
/// The second network's gateway, which has no way out either.
pub(crate) const SECOND_GATEWAY: &str = "10.99.0.1";
const NAMESPACES: &str = "/run/netns";

/// Name as `ip netns` knows it. Labs use the same addresses: no packet leaves a namespace.
pub(crate) fn namespace() -> String {
    instance::label()
}

fn file() -> String {
    format!("{NAMESPACES}/{}", namespace())
}

/// Whether the namespace exists and is mounted (a crash leaves a file without its mount).
fn exists() -> Result<bool> {
    Ok(mounts::under(Path::new(&file()))?.iter().any(|point| point == Path::new(&file())))
}

/// Whether the network is complete: its bridge is switched on last.
pub(crate) fn is_up() -> Result<bool> {
    let shown =
        || output(&mut command("ip", ["-n", &namespace(), "-o", "link", "show", "dev", BRIDGE, "up"]));
    Ok(exists()? && shown().is_ok_and(|line| !line.trim().is_empty()))
}

/// Creates namespace and bridge; nothing happens when they are there.
pub(crate) fn up() -> Result<()> {
    if is_up()? {
        return Ok(());
    }
    down()?;
    output(&mut command("ip", ["netns", "add", &namespace()])).context("cannot create the lab's network")?;
    // Only inside the namespace. A forwarding gateway without a route reports "unreachable" at once; without forwarding,
    // connections would time out.
    output(&mut inside("sysctl", ["-qw", "net.ipv4.ip_forward=1"]))?;
    ip("link set lo up")?;
    ip(&format!("link add {BRIDGE} type bridge"))?;
    ip(&format!("addr add {GATEWAY}/24 dev {BRIDGE}"))?;
    ip(&format!("link set {BRIDGE} up"))
}

/// Creates the second network, which exists only if a host is in it. Each step succeeds if it was done before: hosts start
/// concurrently, and an `up` may have been killed in between.
pub(crate) fn second_up() -> Result<()> {
    let exists =
        || output(&mut command("ip", ["-n", &namespace(), "link", "show", "dev", SECOND_BRIDGE])).is_ok();
    if let Err(error) = ip(&format!("link add {SECOND_BRIDGE} type bridge")) {
        ensure!(exists(), error);
    }
    ip(&format!("addr replace {SECOND_GATEWAY}/24 dev {SECOND_BRIDGE}"))?;
    ip(&format!("link set {SECOND_BRIDGE} up"))
}

/// `ip` in the lab's namespace; arguments are separated by single spaces.
pub(crate) fn ip(words: &str) -> Result<()> {
    output(command("ip", ["-n", &namespace()]).args(words.split(' ')))
        .context("cannot create the lab's network")?;
    Ok(())
}

/// Removes the namespace (its links go with it), and the mount that `ip netns` made for it when nothing else uses it.
pub(crate) fn down() -> Result<()> {
    if exists()? {
        output(&mut command("ip", ["netns", "delete", &namespace()]))
            .context("cannot delete the lab's network")?;
    }
    if Path::new(&file()).exists() {
        fs::remove_file(file())?;
    }
    let directory = Path::new(NAMESPACES);
    if fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_none()) {
        mounts::detach_all(directory)?;
        let _ = fs::remove_dir(directory);
    }
    Ok(())
}

/// A command that runs in the lab's network. `ip netns exec` is not used, because it remounts /sys and hides the control groups.
pub(crate) fn inside<S: AsRef<OsStr>>(
    program: impl AsRef<OsStr>,
    args: impl IntoIterator<Item = S>,
) -> Command {
    let mut words =
        vec![OsString::from(format!("--net={}", file())), "--".into(), program.as_ref().to_owned()];
    words.extend(args.into_iter().map(|word| word.as_ref().to_owned()));
    command("nsenter", words)
}
