//! From the command line to a [`Spec`]: reads the file, or describes this machine when there is none.

use std::{
    fs::File,
    io::{self, Read},
    net::{IpAddr, Ipv4Addr, UdpSocket},
    os::unix::fs::MetadataExt,
    path::Path,
};

use kk_config::{Diagnostic, KubeVersion, Loaded, Manifest, Overrides, Severity, Spec};
use kk_connector::quote;

use crate::error::Error;

/// An address of the documentation range (RFC 5737): nothing is sent there.
const ELSEWHERE: (Ipv4Addr, u16) = (Ipv4Addr::new(192, 0, 2, 1), 9);

/// Bytes that are read of a file: far more than any cluster needs, far less than a device or an image has.
const LARGEST: u64 = 16 << 20;

/// What the command line names.
pub(super) struct Input {
    pub(super) spec: Spec,
    pub(super) warnings: Vec<Diagnostic>,
}

/// The cluster that the command line names.
pub(super) fn input(file: Option<&Path>, kubernetes: Option<KubeVersion>) -> Result<Input, Error> {
    input_with(file, &overrides(kubernetes))
}

/// The same, with all that the command line may say in place of the file.
pub(super) fn input_with(file: Option<&Path>, overrides: &Overrides) -> Result<Input, Error> {
    let Some(file) = file else {
        let spec = all_in_one(overrides.kubernetes_version)?;
        return Ok(Input { spec, warnings: Vec::new() });
    };
    let Loaded { spec, warnings, .. } = load(file, overrides)?;
    Ok(Input { spec, warnings })
}

fn overrides(kubernetes: Option<KubeVersion>) -> Overrides {
    Overrides { kubernetes_version: kubernetes, ..Overrides::default() }
}

/// Reads a file, or standard input for `-`, and checks it.
pub(super) fn file(path: &Path, kubernetes: Option<KubeVersion>) -> Result<Loaded, Error> {
    load(path, &overrides(kubernetes))
}

fn load(path: &Path, overrides: &Overrides) -> Result<Loaded, Error> {
    let mut loaded = Text::read(path)?.cluster(overrides)?;
    loaded.warnings.extend(open_to_all(path));
    Ok(loaded)
}

/// The file says what runs as root on the hosts.
fn open_to_all(path: &Path) -> Option<Diagnostic> {
    if is_input(path) {
        return None;
    }
    // Write permission for any directory of its path is enough to replace a file. A link has two paths: its own and its target's.
    let (target, absolute) = (path.canonicalize().ok()?, std::path::absolute(path).ok()?);
    let directories = absolute.ancestors().skip(1).chain(target.ancestors().skip(1));
    let is_open = |path: &&Path| {
        std::fs::metadata(path).is_ok_and(|data| {
            let is_sticky = data.is_dir() && data.mode() & 0o1000 != 0;
            data.mode() & 0o002 != 0 && !is_sticky
        })
    };
    let open = std::iter::once(path).chain(directories).find(is_open)?;
    let verb = if open == path { "change" } else { "replace" };
    Some(Diagnostic {
        severity: Severity::Warning,
        message: format!(
            "every user of this machine can {verb} {}, and so what runs as root on the hosts",
            name(path)
        ),
        hint: Some(format!("chmod o-w {}", quote(&open.to_string_lossy()))),
        place: None,
    })
}

/// A file that was read and not checked yet.
pub(super) struct Text {
    name: String,
    text: String,
}

impl Text {
    /// Reads a file, or standard input for `-`.
    pub(super) fn read(path: &Path) -> Result<Self, Error> {
        let name = name(path);
        let opened = open(path).map_err(|error| unreadable(&name, &error))?;
        let text = text(&name, opened)?;
        Ok(Self { name, text })
    }

    pub(super) fn is_manifest(&self) -> bool {
        kk_config::is_manifest(&self.text)
    }

    pub(super) fn cluster(&self, overrides: &Overrides) -> Result<Loaded, Error> {
        kk_config::load(&self.name, &self.text, overrides).map_err(Error::Config)
    }

    pub(super) fn manifest(&self) -> Result<(Manifest, Vec<Diagnostic>), Error> {
        kk_config::load_manifest(&self.name, &self.text).map_err(Error::Config)
    }
}

/// Reads a Manifest, or standard input for `-`, and checks it.
pub(super) fn manifest(path: &Path, warn: impl Fn(&Diagnostic)) -> Result<Manifest, Error> {
    let name = name(path);
    let opened = open(path).map_err(|error| {
        let hint = "name a file with -m; `kk create manifest` writes one".to_owned();
        Error::config(format!("cannot read {name}: {error}"), Some(hint))
    })?;
    let (manifest, warnings) = Text { text: text(&name, opened)?, name }.manifest()?;
    warnings.iter().for_each(warn);
    Ok(manifest)
}

/// What messages call the file.
pub(super) fn name(path: &Path) -> String {
    if is_input(path) { "standard input".into() } else { path.display().to_string() }
}

fn is_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    Ok(if is_input(path) { Box::new(io::stdin()) } else { Box::new(File::open(path)?) })
}

fn text(name: &str, from: impl Read) -> Result<String, Error> {
    let mut bytes = Vec::new();
    from.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| unreadable(name, &error))?;
    if bytes.len() as u64 > LARGEST {
        let message = format!("{name} is larger than {} MiB: it is not a configuration file", LARGEST >> 20);
        return Err(Error::config(message, None));
    }
    String::from_utf8(bytes).map_err(|error| {
        let start = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = start.split(|byte| *byte == b'\n').count();
        Error::config(format!("{name} is not UTF-8 text (line {line})"), Some("save it as UTF-8".into()))
    })
}

fn unreadable(name: &str, error: &io::Error) -> Error {
    let hint = (error.kind() == io::ErrorKind::NotFound)
        .then(|| "name a file with -f; `kk create config` writes one to start from".into());
    Error::config(format!("cannot read {name}: {error}"), hint)
}

fn all_in_one(kubernetes: Option<KubeVersion>) -> Result<Spec, Error> {
    let doing = "describe this machine as a cluster";
    let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_err(|error| Error::other(doing, format!("its host name cannot be read: {error}")))?;
    let address = own_address().ok_or_else(|| Error::Other {
        doing: doing.into(),
        cause: "it has no IPv4 address towards other machines".into(),
        hint: Some("write a file with the address (`kk create config`) and use -f".into()),
    })?;
    Spec::all_in_one(hostname.trim(), address, kubernetes.unwrap_or_default()).map_err(Error::Config)
}

/// The address that the control machine uses towards others: the kernel's choice of source for its default route.
fn own_address() -> Option<Ipv4Addr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect(ELSEWHERE).ok()?;
    match socket.local_addr().ok()?.ip() {
        IpAddr::V4(address) if !address.is_unspecified() && !address.is_loopback() => Some(address),
        _ => None,
    }
}
