//! A host as a virtual machine: a kernel of its own, cgroup v2, its own modules. Emulated, so it needs nothing of this
//! machine, and is 5 to 15 times slower than a container.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::hosts::settings::Settings;
use crate::hosts::{Host, furnish, network};
use crate::sys::packages;
use crate::sys::run::{command, output};
use crate::sys::{cgroup, net};

const PROGRAM: &str = "qemu-system-x86_64";
const MEMORY: &str = "4096";
const CPUS: &str = "2";

/// Process id of the emulator, when it runs.
pub(super) fn process(host: &Host) -> Result<Option<i32>> {
    let is_emulator = |id: &i32| {
        fs::read(format!("/proc/{id}/cmdline")).is_ok_and(|line| line.starts_with(PROGRAM.as_bytes()))
    };
    Ok(cgroup::processes(&host.name)?.into_iter().find(is_emulator))
}

/// Makes the disk of the host above `base`, and the second one with the host's own files.
pub(super) fn prepare(host: &Host, settings: &Settings, base: &Path) -> Result<()> {
    packages::install(packages::VIRTUAL_MACHINES)?;
    let directory = host.directory();
    let create = ["create", "-q", "-f", "qcow2", "-F", "raw", "-b"];
    output(command("qemu-img", create).arg(base).arg(directory.join("disk.qcow2")))?;
    let seed = directory.join("seed");
    fs::create_dir_all(&seed)?;
    furnish::virtual_machine(host, settings, &seed)?;
    let archive = directory.join("seed.tar");
    output(command("tar", ["--owner=0", "--group=0", "-C"]).arg(&seed).arg("-cf").arg(&archive).arg("."))?;
    Ok(())
}

/// The command that starts the host.
pub(super) fn command_line(host: &Host, settings: &Settings, kernel: &Path, initrd: &Path) -> Command {
    let directory = host.directory();
    let mut words = vec![
        "-name".to_owned(),
        host.name.clone(),
        "-display".into(),
        "none".into(),
        "-monitor".into(),
        "none".into(),
        // The boot log.
        "-serial".into(),
        "stdio".into(),
        "-no-user-config".into(),
        "-nodefaults".into(),
        "-machine".into(),
        "q35".into(),
        "-accel".into(),
        "tcg,thread=multi,tb-size=1024".into(),
        "-cpu".into(),
        "max".into(),
        "-smp".into(),
        CPUS.into(),
        "-m".into(),
        MEMORY.into(),
        "-append".into(),
        "root=/dev/vda rw console=ttyS0 systemd.unified_cgroup_hierarchy=1 mitigations=off".into(),
        "-drive".into(),
        format!("file={},if=virtio,cache=unsafe,discard=unmap", directory.join("disk.qcow2").display()),
        "-drive".into(),
        format!("file={},if=virtio,format=raw,readonly=on", directory.join("seed.tar").display()),
        "-device".into(),
        "virtio-rng-pci".into(),
    ];
    let mut card = |id: &str, tap: &str, address: &str| {
        words.extend(["-netdev".into(), format!("tap,id={id},ifname={tap},script=no,downscript=no")]);
        words.extend(["-device".into(), format!("virtio-net-pci,netdev={id},mac={address}")]);
    };
    card("n0", &network::plug_name(host), &network::first_mac(host));
    if settings.second_network {
        card("n1", &network::second_plug(host), &network::second_mac(host));
    }
    let mut command = net::inside(PROGRAM, words);
    command.arg("-kernel").arg(kernel).arg("-initrd").arg(initrd);
    command
}
