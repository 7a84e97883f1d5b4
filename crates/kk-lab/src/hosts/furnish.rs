//! Files that make a copy of the common root file system one certain host: name, addresses, key, user, first unit.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use anyhow::{Context, Result};

use crate::hosts::settings::Settings;
use crate::hosts::{Host, network};
use crate::sys::run::{command, output, output_with_input};
use crate::sys::{net, paths};

const PREPARE: &str = include_str!("prepare.sh");
/// Runs before everything that could look at control groups or write kernel parameters.
const PREPARE_UNIT: &str = "[Unit]
Description=Make this container a host for containers
DefaultDependencies=no
Before=sysinit.target systemd-sysctl.service
[Service]
Type=oneshot
ExecStart=/bin/sh /usr/local/sbin/lab-prepare
[Install]
WantedBy=sysinit.target
";

/// Only network cards: networkd waits until udev has processed them, and the full trigger of older releases fails at this
/// machine's other devices.
const COLDPLUG: &str =
    "[Service]\nExecStart=\nExecStart=-/bin/udevadm trigger --subsystem-match=net --action=add\n";

/// A user other than root, who may do everything by sudo with the password. Not printable: it holds that password.
#[derive(Clone)]
pub(crate) struct SudoUser {
    pub(crate) name: String,
    pub(crate) password: String,
}

/// Writes the files that turn the root file system below `root` into this host, a container.
pub(super) fn container(
    host: &Host,
    settings: &Settings,
    root: &Path,
    user: Option<&SudoUser>,
) -> Result<()> {
    let machine_id = fs::read_to_string("/proc/sys/kernel/random/uuid")?.replace('-', "");
    let first = Card { condition: "Name=host0".into(), address: host.address.clone(), gateway: net::GATEWAY };
    let second = Card {
        condition: format!("Name={}", network::second_card(host)),
        address: host.second_address(),
        gateway: net::SECOND_GATEWAY,
    };
    any_host(host, settings, root, &[first, second])?;
    let files = [
        (root.join("etc/machine-id"), machine_id),
        // This unit sometimes fails in a container, and callers of hostnamectl then hang for 25 s.
        (
            root.join("etc/systemd/system/systemd-hostnamed.service.d/lab.conf"),
            "[Service]\nRestart=on-failure\n".into(),
        ),
        (root.join("etc/systemd/system/systemd-udev-trigger.service.d/lab.conf"), COLDPLUG.to_owned()),
        (root.join("etc/systemd/system/lab-prepare.service"), PREPARE_UNIT.to_owned()),
        (root.join("usr/local/sbin/lab-prepare"), PREPARE.to_owned()),
    ];
    for (path, text) in files {
        write(&path, &text)?;
    }
    // Files that these timers write would be mistaken for files that a delete left behind.
    for timer in ["apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer"] {
        mask(root, timer)?;
    }
    // A host with a kernel of its own already has this directory; without it, the kubelet creates it.
    fs::create_dir_all(root.join("usr/lib/modules"))?;
    enable(root, "sysinit.target", "/etc/systemd/system/lab-prepare.service")?;
    if let Some(user) = user {
        add_user(root, user, &public_key()?)?;
    }
    Ok(())
}

/// Writes the files that the first boot of a virtual machine unpacks.
pub(super) fn virtual_machine(host: &Host, settings: &Settings, seed: &Path) -> Result<()> {
    let first = Card {
        condition: format!("MACAddress={}", network::first_mac(host)),
        address: host.address.clone(),
        gateway: net::GATEWAY,
    };
    let second = Card {
        condition: format!("MACAddress={}", network::second_mac(host)),
        address: host.second_address(),
        gateway: net::SECOND_GATEWAY,
    };
    any_host(host, settings, seed, &[first, second])
}

/// A network card: how it is recognised, and its settings.
struct Card {
    condition: String,
    address: String,
    gateway: &'static str,
}

/// Name, addresses, name server, key. The last card has the default route, as a public one has.
fn any_host(host: &Host, settings: &Settings, root: &Path, cards: &[Card; 2]) -> Result<()> {
    let resolver = root.join("etc/resolv.conf");
    // It may be a link; written through, it would change whatever it points at.
    let _ = fs::remove_file(&resolver);
    write(&resolver, &format!("nameserver {}\n", net::GATEWAY))?;
    write(&root.join("etc/hostname"), &format!("{}\n", host.name))?;
    let names = format!("127.0.0.1 localhost\n127.0.1.1 {}\n::1 localhost\n", host.name);
    write(&root.join("etc/hosts"), &names)?;
    let count = if settings.second_network { 2 } else { 1 };
    for (number, card) in cards.iter().take(count).enumerate() {
        let gateway = if number + 1 == count { format!("Gateway={}\n", card.gateway) } else { String::new() };
        let text = format!("[Match]\n{}\n[Network]\nAddress={}/24\n{gateway}", card.condition, card.address);
        write(&root.join(format!("etc/systemd/network/1{number}-lab.network")), &text)?;
    }
    enable(root, "multi-user.target", "/lib/systemd/system/systemd-networkd.service")?;
    authorize(&root.join("root/.ssh"), &public_key()?)
}

fn public_key() -> Result<String> {
    fs::read_to_string(paths::state("id_ed25519.pub")).context("the lab has no key")
}

fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn mask(root: &Path, unit: &str) -> Result<()> {
    let path = root.join("etc/systemd/system").join(unit);
    // A directory of a host that was here before.
    let _ = fs::remove_file(&path);
    symlink("/dev/null", &path).with_context(|| format!("cannot mask {unit}"))
}

fn enable(root: &Path, target: &str, unit: &str) -> Result<()> {
    let directory = root.join(format!("etc/systemd/system/{target}.wants"));
    fs::create_dir_all(&directory)?;
    let name = Path::new(unit).file_name().context("a unit has a name")?;
    if fs::symlink_metadata(directory.join(name)).is_err() {
        symlink(unit, directory.join(name))?;
    }
    Ok(())
}

fn authorize(directory: &Path, key: &str) -> Result<()> {
    write(&directory.join("authorized_keys"), key)?;
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
    fs::set_permissions(directory.join("authorized_keys"), fs::Permissions::from_mode(0o600))?;
    Ok(())
}

fn add_user(root: &Path, user: &SudoUser, key: &str) -> Result<()> {
    let root_text = root.display().to_string();
    output(&mut command(
        "useradd",
        ["--root", &root_text, "--create-home", "--shell", "/bin/bash", &user.name],
    ))?;
    let line = format!("{}:{}\n", user.name, user.password);
    output_with_input(&mut command("chpasswd", ["--root", &root_text]), &line)?;
    let rule = root.join("etc/sudoers.d").join(&user.name);
    write(&rule, &format!("{} ALL=(ALL:ALL) ALL\n", user.name))?;
    fs::set_permissions(&rule, fs::Permissions::from_mode(0o440))?;
    let home = root.join("home").join(&user.name);
    authorize(&home.join(".ssh"), key)?;
    let owner = format!("{0}:{0}", user.name);
    let directory = format!("/home/{}/.ssh", user.name);
    output(&mut command("chroot", [&root_text, "chown", "-R", &owner, &directory]))?;
    Ok(())
}
