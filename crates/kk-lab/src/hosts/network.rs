//! How hosts are plugged into the lab's network: a cable to the bridge, with `delay` a relay in between that holds every
//! frame, and with a second network card a cable to the second bridge, as a cloud's public network is.

use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::hosts::Host;
use crate::hosts::settings::{Base, Settings};
use crate::sys::run::{command, output, succeeds};
use crate::sys::{background, cgroup, net, packages, paths};

/// Kernels of small machines have no queue that delays (netem), so a program does.
const RELAY: &str = include_str!("relay.py");
const RELAY_PATIENCE: Duration = Duration::from_secs(10);

/// The bridge's end of the first cable, named as systemd-nspawn names it.
pub(super) fn plug_name(host: &Host) -> String {
    format!("vb-{}", host.name)
}

/// The bridge's end of the second cable.
pub(super) fn second_plug(host: &Host) -> String {
    format!("vx-{}", host.name)
}

/// The second card, as a container sees it.
pub(super) fn second_card(host: &Host) -> String {
    format!("pub-{}", host.name)
}

/// Hardware address of a virtual machine's first card.
pub(super) fn first_mac(host: &Host) -> String {
    format!("52:54:00:1e:00:{:02x}", host.number)
}

/// Hardware address of a virtual machine's second card.
pub(super) fn second_mac(host: &Host) -> String {
    format!("52:54:00:1f:00:{:02x}", host.number)
}

/// The bridge that the first cable goes to: one of the host's own where a relay leads on.
pub(super) fn bridge(host: &Host, settings: &Settings) -> String {
    if settings.delay_ms.is_some() { format!("bd-{}", host.name) } else { net::BRIDGE.to_owned() }
}

fn relay(host: &Host) -> String {
    format!("{}-relay", host.name)
}

/// Lays the cables. What was left of others goes first.
pub(super) fn plug(host: &Host, settings: &Settings) -> Result<()> {
    unplug(host)?;
    if let Some(delay) = settings.delay_ms {
        start_relay(host, &bridge(host, settings), delay)?;
    }
    let is_container = matches!(settings.base, Base::Tree(_));
    // A container's first cable is laid by nspawn.
    if !is_container {
        net::ip(&format!("tuntap add {} mode tap", plug_name(host)))?;
        net::ip(&format!("link set {} master {} up", plug_name(host), bridge(host, settings)))?;
    }
    if settings.second_network {
        net::second_up()?;
        let plug = second_plug(host);
        if is_container {
            net::ip(&format!("link add {plug} type veth peer name {}", second_card(host)))?;
        } else {
            net::ip(&format!("tuntap add {plug} mode tap"))?;
        }
        net::ip(&format!("link set {plug} master {} up", net::SECOND_BRIDGE))?;
        // Hosts do not reach each other there.
        net::ip(&format!("link set {plug} type bridge_slave isolated on"))?;
    }
    Ok(())
}

/// Removes the cables. The kernel keeps a container's network, and its cables, while connections of dead programs linger.
pub(super) fn unplug(host: &Host) -> Result<()> {
    cgroup::remove(&relay(host))?;
    let bridge = format!("bd-{}", host.name);
    for link in [plug_name(host), second_plug(host), bridge] {
        succeeds(&mut command("ip", ["-n", net::NAMESPACE, "link", "delete", &link]));
    }
    Ok(())
}

/// The relay makes its two ends; they are plugged in when they are there.
fn start_relay(host: &Host, bridge: &str, delay_ms: u32) -> Result<()> {
    packages::install(packages::DELAY)?;
    let ends = [format!("ra-{}", host.name), format!("rb-{}", host.name)];
    let words = ["-c", RELAY, &ends[0], &ends[1], &delay_ms.to_string()];
    let log = paths::state(&format!("{}.log", relay(host)));
    let wanted: Command = net::inside("python3", words);
    let mut child: Child = background::start(&relay(host), &wanted, &log)?;
    net::ip(&format!("link add {bridge} type bridge"))?;
    net::ip(&format!("link set {bridge} up"))?;
    let begun = Instant::now();
    for (end, to) in ends.iter().zip([bridge, net::BRIDGE]) {
        while !succeeds(&mut command("ip", ["-n", net::NAMESPACE, "link", "show", "dev", end])) {
            let runs = child.try_wait()?.is_none() && begun.elapsed() < RELAY_PATIENCE;
            ensure!(runs, "the relay of {} does not start: {}", host.name, log.display());
            sleep(Duration::from_millis(30));
        }
        net::ip(&format!("link set {end} master {to} up"))?;
    }
    output(&mut command("ip", ["-n", net::NAMESPACE, "link", "show", "dev", bridge])).context("the relay")?;
    Ok(())
}
