//! Connections of hosts to the lab's network: a cable to the bridge, with `delay` a relay in between that holds back every frame,
//! and with a second network card a cable to the second bridge, like a cloud's public network.

use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::hosts::Host;
use crate::hosts::settings::{Base, Settings};
use crate::sys::run::{command, succeeds};
use crate::sys::{background, cgroup, instance, net, packages, paths};

/// Kernels of small machines have no queue that delays packets (netem), so a program delays them.
const RELAY: &str = include_str!("relay.py");
const LINK_PATIENCE: Duration = Duration::from_mins(1);

/// The bridge's end of the first cable, named as systemd-nspawn names it.
pub(super) fn plug_name(host: &Host) -> String {
    format!("vb-{}", instance::machine(&host.name))
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

/// The bridge at the end of the first cable: a bridge of the host's own if a relay follows.
pub(super) fn bridge(host: &Host, settings: &Settings) -> String {
    if settings.delay_ms.is_some() { format!("bd-{}", host.name) } else { net::BRIDGE.to_owned() }
}

fn relay(host: &Host) -> String {
    format!("{}-relay", host.name)
}

/// Connects the cables, after removing those that are left from an earlier run.
pub(super) fn plug(host: &Host, settings: &Settings) -> Result<()> {
    unplug(host)?;
    if let Some(delay) = settings.delay_ms {
        start_relay(host, &bridge(host, settings), delay)?;
    }
    // A container's cables are laid by nspawn.
    if matches!(settings.base, Base::Disk { .. }) {
        net::ip(&format!("tuntap add {} mode tap", plug_name(host)))?;
        net::ip(&format!("link set {} master {} up", plug_name(host), bridge(host, settings)))?;
        if settings.second_network {
            net::ip(&format!("tuntap add {} mode tap", second_plug(host)))?;
        }
    }
    if settings.second_network {
        net::second_up()?;
    }
    Ok(())
}

/// Plugs the second cable in when it is there. Hosts do not reach each other by it.
pub(super) fn plug_second(host: &Host, settings: &Settings, child: &mut Child) -> Result<()> {
    if settings.second_network {
        let plug = second_plug(host);
        await_link(&plug, child)?;
        net::ip(&format!("link set {plug} master {} up", net::SECOND_BRIDGE))?;
        net::ip(&format!("link set {plug} type bridge_slave isolated on"))?;
    }
    Ok(())
}

/// Waits for a link that `child` makes.
fn await_link(link: &str, child: &mut Child) -> Result<()> {
    let begun = Instant::now();
    while !succeeds(&mut command("ip", ["-n", &net::namespace(), "link", "show", "dev", link])) {
        ensure!(child.try_wait()?.is_none(), "the program that makes the link {link} ended");
        ensure!(begun.elapsed() < LINK_PATIENCE, "the link {link} does not appear");
        sleep(Duration::from_millis(30));
    }
    Ok(())
}

/// Removes the cables. The kernel keeps a container's network, and its cables, while connections of dead programs linger.
pub(super) fn unplug(host: &Host) -> Result<()> {
    cgroup::remove(&relay(host))?;
    let bridge = format!("bd-{}", host.name);
    for link in [plug_name(host), second_plug(host), bridge] {
        succeeds(&mut command("ip", ["-n", &net::namespace(), "link", "delete", &link]));
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
    for (end, to) in ends.iter().zip([bridge, net::BRIDGE]) {
        await_link(end, &mut child)
            .with_context(|| format!("the relay does not start: {}", log.display()))?;
        net::ip(&format!("link set {end} master {to} up"))?;
    }
    Ok(())
}
