//! What makes a copy of the common root file system one certain host: name, address, key, user, first unit.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use anyhow::{Context, Result};

use crate::host::Host;
use crate::run::{command, output, output_with_input};
use crate::{net, paths};

const PREPARE: &str = include_str!("host_prepare.sh");
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

/// A user besides root, who may do everything by sudo with the password. Not printable: it holds that password.
#[derive(Clone)]
pub(crate) struct SudoUser {
    pub(crate) name: String,
    pub(crate) password: String,
}

/// Writes what makes the root file system below `root` this host.
pub(crate) fn furnish(host: &Host, root: &Path, user: Option<&SudoUser>) -> Result<()> {
    let key = fs::read_to_string(paths::state("id_ed25519.pub"))?;
    let network =
        format!("[Match]\nName=host0\n[Network]\nAddress={}/24\nGateway={}\n", host.address, net::GATEWAY);
    let machine_id = fs::read_to_string("/proc/sys/kernel/random/uuid")?.replace('-', "");
    let resolver = root.join("etc/resolv.conf");
    // It may be a link; written through, it would change whatever it points at.
    let _ = fs::remove_file(&resolver);
    let files = [
        (resolver, format!("nameserver {}\n", net::GATEWAY)),
        (root.join("etc/hostname"), format!("{}\n", host.name)),
        (root.join("etc/hosts"), format!("127.0.0.1 localhost\n127.0.1.1 {}\n::1 localhost\n", host.name)),
        (root.join("etc/machine-id"), machine_id),
        (root.join("etc/systemd/network/10-host0.network"), network),
        // It fails now and then in a container, and callers of hostnamectl then hang for 25 s.
        (
            root.join("etc/systemd/system/systemd-hostnamed.service.d/lab.conf"),
            "[Service]\nRestart=on-failure\n".into(),
        ),
        (root.join("etc/systemd/system/lab-prepare.service"), PREPARE_UNIT.to_owned()),
        (root.join("usr/local/sbin/lab-prepare"), PREPARE.to_owned()),
    ];
    for (path, text) in files {
        write(&path, &text)?;
    }
    // A host with a kernel of its own has it; without it the kubelet makes it.
    fs::create_dir_all(root.join("usr/lib/modules"))?;
    enable(root, "sysinit.target", "/etc/systemd/system/lab-prepare.service")?;
    enable(root, "multi-user.target", "/lib/systemd/system/systemd-networkd.service")?;
    authorize(&root.join("root/.ssh"), &key)?;
    if let Some(user) = user {
        add_user(root, user, &key)?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn enable(root: &Path, target: &str, unit: &str) -> Result<()> {
    let folder = root.join(format!("etc/systemd/system/{target}.wants"));
    fs::create_dir_all(&folder)?;
    let name = Path::new(unit).file_name().context("a unit has a name")?;
    if fs::symlink_metadata(folder.join(name)).is_err() {
        symlink(unit, folder.join(name))?;
    }
    Ok(())
}

fn authorize(folder: &Path, key: &str) -> Result<()> {
    write(&folder.join("authorized_keys"), key)?;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    fs::set_permissions(folder.join("authorized_keys"), fs::Permissions::from_mode(0o600))?;
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
    let folder = format!("/home/{}/.ssh", user.name);
    output(&mut command("chroot", [&root_text, "chown", "-R", &owner, &folder]))?;
    Ok(())
}
