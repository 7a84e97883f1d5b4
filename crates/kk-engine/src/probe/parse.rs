//! Parses the output of the probe's script into [`Facts`]. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::script::swap_separators;
use crate::{
    Facts, FileFact, Owned, ProbeSpec, UnitFact,
    question::{Replies, Reply},
};

/// `CAP_SYS_RESOURCE` (linux/capability.h).
const CAP_SYS_RESOURCE: u32 = 24;

/// Reads the output of [`super::probe_script`]'s script.
///
/// `sent_ms` and `received_ms` are the control machine's times when the script was sent and when its answer had arrived, in
/// milliseconds since 1970. The host reports its time when the script begins and when it ends.
///
/// # Errors
/// The part of the output that is missing or cannot be parsed, in one line.
pub fn parse(
    spec: &ProbeSpec,
    nonce: &str,
    output: &str,
    (sent_ms, received_ms): (i64, i64),
) -> Result<Facts, String> {
    let sections = Sections::split(nonce, output);
    let mut facts = Facts::default();
    let (begun, unsure) = clock_ms(sections.get("begun")?).ok_or("its beginning is missing")?;
    let (ended, _) = clock_ms(sections.get("ended")?).ok_or("it has no end")?;
    // The script began after it was sent and ended before the answer arrived. No closer bounds are known: sending may include a
    // slow log-in, and the answer a slow line.
    let (least, most) = (ended - received_ms, begun + unsure - sent_ms);
    facts.clock_skew_ms = i64::midpoint(least, most);
    facts.clock_uncertainty_ms = (most - least).abs() / 2;
    let clocks = kernel(&mut facts, sections.get("kernel")?)?;
    facts.files = files(&sections, clocks)?;
    modules(&mut facts, spec, sections.get("modules")?);
    cgroups(&mut facts, sections.get("cgroups")?);
    facts.units = units(spec, sections.get("units")?, facts.systemd)?;
    facts.tools = pairs(sections.get("tools")?);
    facts.users =
        sections.lines("users")?.filter_map(|line| line.split(':').next()).map(str::to_owned).collect();
    facts.users.retain(|user| spec.users.contains(user));
    facts.ports = ports(spec, sections.get("ports")?);
    facts.disks = disks(sections.get("disks")?);
    for line in sections.lines("sysctls")? {
        match line.splitn(3, '\t').collect::<Vec<_>>()[..] {
            ["ro", path] => _ = facts.sysctls_read_only.insert(swap_separators(path)),
            ["is", path, value] => drop(facts.sysctls.insert(swap_separators(path), words(value))),
            _ => {}
        }
    }
    facts.swaps = sections.lines("swaps")?.skip(1).filter_map(first_word).collect();
    facts.selinux = match sections.get("selinux")?.trim() {
        "1" => "enforcing".into(),
        "0" => "permissive".into(),
        other => other.into(),
    };
    release(&mut facts, sections.get("release")?);
    let resolv = sections.lines("resolv")?;
    facts.nameservers =
        resolv.filter_map(|line| line.trim().strip_prefix("nameserver")).filter_map(first_word).collect();
    facts.addresses = addresses(sections.get("addresses")?);
    facts.owned = Owned::parse(sections.get("owned")?);
    facts.replies = replies(spec, &sections);
    Ok(facts)
}

/// The output, divided into its sections: section name → text.
struct Sections<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Sections<'a> {
    fn split(nonce: &str, output: &'a str) -> Self {
        let frame = format!("\n@{nonce} ");
        let parts = output.split(frame.as_str()).skip(1);
        Self(parts.map(|part| part.split_once('\n').unwrap_or((part, ""))).collect())
    }

    fn get(&self, name: &str) -> Result<&'a str, String> {
        self.0.get(name).copied().ok_or_else(|| format!("the section \"{name}\" is missing"))
    }

    /// The section whose name is `prefix` followed by an exit code.
    fn with_code(&self, prefix: &str) -> Option<(i32, &'a str)> {
        let (name, text) = self.0.range(prefix..).next()?;
        Some((name.strip_prefix(prefix)?.parse().ok()?, *text))
    }

    fn lines(&self, name: &str) -> Result<std::str::Lines<'a>, String> {
        self.get(name).map(str::lines)
    }
}

/// Milliseconds from the output of `date +%s%N`, and by how many the true time may be later. A `date` without `%N` prints only
/// seconds, alone or followed by the letters.
fn clock_ms(text: &str) -> Option<(i64, i64)> {
    let digits: String = text.trim().chars().take_while(char::is_ascii_digit).collect();
    let number: i64 = digits.parse().ok()?;
    Some(if digits.len() > 12 { (number / 1_000_000, 1) } else { (number * 1000, 1000) })
}

/// The host's clocks at one moment.
#[derive(Clone, Copy)]
struct Clocks {
    /// Milliseconds since 1970.
    now_ms: i64,
    /// Milliseconds of uptime.
    up_ms: i64,
}

impl Clocks {
    /// The uptime at which a file was written. A time in the future (by more than the error of a clock that counts seconds) is
    /// from before the clock was set back. The true time is then unknown, and the file must not seem new at every probe.
    fn written_ms(self, mtime_ms: i64) -> u64 {
        let ago = self.now_ms.saturating_sub(mtime_ms);
        if ago < -1000 { 0 } else { u64::try_from(self.up_ms.saturating_sub(ago)).unwrap_or(0) }
    }
}

/// Parses the lines of the section `kernel`, in its order.
fn kernel(facts: &mut Facts, text: &str) -> Result<Clocks, String> {
    let lines: Vec<&str> = text.lines().collect();
    let [hostname, release, machine, cpus, memory, uptime, clock, capabilities, ..] = lines[..] else {
        return Err("the section \"kernel\" is too short".into());
    };
    hostname.clone_into(&mut facts.hostname);
    release.clone_into(&mut facts.kernel);
    facts.arch = match machine {
        "x86_64" => "amd64".into(),
        "aarch64" => "arm64".into(),
        other => other.into(),
    };
    facts.cpus = cpus.trim().parse().map_err(|_| format!("{cpus:?} is not a number of processors"))?;
    facts.memory_kib = memory
        .split_whitespace()
        .nth(1)
        .and_then(|kib| kib.parse().ok())
        .ok_or_else(|| format!("{memory:?} is not a memory size"))?;
    let bits = capabilities.split_whitespace().nth(1).and_then(|hex| u64::from_str_radix(hex, 16).ok());
    facts.can_raise_limits = bits.is_none_or(|bits| bits >> CAP_SYS_RESOURCE & 1 == 1);
    // Nanoseconds end in an "n"; /proc/uptime has seconds.
    let up = match uptime.strip_suffix('n') {
        Some(nanoseconds) => nanoseconds.parse::<i64>().ok().map(|number| number / 1_000_000),
        None => first_word(uptime).and_then(|seconds| decimal_ms(&seconds)),
    };
    let clocks = clock_ms(clock).zip(up).map(|((now_ms, _), up_ms)| Clocks { now_ms, up_ms });
    clocks.ok_or_else(|| format!("{uptime:?} is no uptime"))
}

/// Milliseconds from decimal seconds with any number of decimals.
fn decimal_ms(seconds: &str) -> Option<i64> {
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    let thousandths: i64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    whole.parse::<i64>().ok()?.checked_mul(1000)?.checked_add(thousandths)
}

fn files(sections: &Sections, clocks: Clocks) -> Result<BTreeMap<String, FileFact>, String> {
    let mut links: BTreeMap<String, String> = pairs(sections.get("links")?);
    let sums: BTreeMap<&str, &str> = sections
        .lines("sums")?
        .filter_map(|line| line.split_once("  "))
        .map(|(sum, path)| (path, sum))
        .collect();
    let mut files = BTreeMap::new();
    for line in sections.lines("files")? {
        let fields: Vec<&str> = line.splitn(8, '\t').collect();
        let [kind, mode, owner, _size, mtime, _ctime, _inode, path] = fields[..] else { continue };
        let mtime = decimal_ms(mtime).ok_or_else(|| format!("{path} has no time: {mtime:?}"))?;
        let fact = FileFact {
            sha256: sums.get(path).map(|sum| (*sum).to_owned()).unwrap_or_default(),
            mode: mode.to_owned(),
            owner: owner.to_owned(),
            kind: match kind {
                kind if kind.starts_with("regular") => "file",
                "directory" => "dir",
                "symbolic link" => "link",
                _ => "other",
            }
            .to_owned(),
            link: links.remove(path).unwrap_or_default(),
            written_ms: clocks.written_ms(mtime),
        };
        files.insert(path.to_owned(), fact);
    }
    Ok(files)
}

/// `systemctl show` prints a block for each unit, in the requested order, even for a unit that does not exist. If a busy systemd
/// omits units, this does not mean that they do not exist.
fn units(spec: &ProbeSpec, text: &str, is_systemd: bool) -> Result<BTreeMap<String, UnitFact>, String> {
    let blocks: Vec<&str> = text.trim().split("\n\n").filter(|block| !block.is_empty()).collect();
    if is_systemd && blocks.len() != spec.units.len() {
        return Err(format!("systemd reported {} of {} units", blocks.len(), spec.units.len()));
    }
    let mut units = BTreeMap::new();
    for (name, block) in spec.units.iter().zip(blocks) {
        let properties: BTreeMap<&str, &str> =
            block.lines().filter_map(|line| line.split_once('=')).collect();
        let property = |name: &str| properties.get(name).copied().unwrap_or("");
        if matches!(property("LoadState"), "not-found" | "") {
            continue;
        }
        let milliseconds = |name| property(name).parse::<u64>().unwrap_or(0) / 1000;
        let fact = UnitFact {
            active: property("ActiveState") == "active",
            enabled: property("UnitFileState") == "enabled",
            stale: property("NeedDaemonReload") == "yes",
            active_since_ms: milliseconds("ActiveEnterTimestampMonotonic"),
            changed_since_ms: milliseconds("StateChangeTimestampMonotonic"),
        };
        units.insert(name.clone(), fact);
    }
    Ok(units)
}

/// Parses lines `name TAB value`; lines without a value are skipped.
fn pairs(text: &str) -> BTreeMap<String, String> {
    let pairs = text.lines().filter_map(|line| line.split_once('\t')).filter(|(_, value)| !value.is_empty());
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Listeners from `ss -Hltnp`, or from `/proc/net/tcp` on a host without `ss`.
fn ports(spec: &ProbeSpec, text: &str) -> BTreeMap<u16, String> {
    let mut ports = BTreeMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let found = match fields[..] {
            ["LISTEN", _, _, address, ..] => address.rsplit_once(':').and_then(|(_, port)| port.parse().ok()),
            // State 0A is TCP_LISTEN (include/net/tcp_states.h).
            [_, address, _, "0A", ..] => {
                address.rsplit_once(':').and_then(|(_, hex)| u16::from_str_radix(hex, 16).ok())
            }
            _ => None,
        };
        let Some(port) = found.filter(|port| spec.ports.contains(port)) else { continue };
        let program =
            line.split_once("((\"").and_then(|(_, rest)| rest.split_once('"')).map_or("", |(name, _)| name);
        let known: &mut String = ports.entry(port).or_default();
        if known.is_empty() {
            program.clone_into(known);
        }
    }
    ports
}

/// Parses a line `of TAB PATH` and the output of `df -Pk` for it: a heading and a line, or nothing if df failed.
fn disks(text: &str) -> BTreeMap<String, (u64, u64)> {
    let mut disks = BTreeMap::new();
    let mut path = "";
    for line in text.lines() {
        if let Some(next) = line.strip_prefix("of\t") {
            path = next;
        } else if let Some(size) = size(line) {
            disks.insert(path.to_owned(), size);
        }
    }
    disks
}

/// Size and free space from a line of `df -Pk`, in KiB. Columns are counted from the percentage, because the name of the device
/// may contain spaces.
fn size(line: &str) -> Option<(u64, u64)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let percent = fields.iter().position(|field| field.ends_with('%'))?;
    Some((fields.get(percent.checked_sub(3)?)?.parse().ok()?, fields.get(percent - 1)?.parse().ok()?))
}

/// Feature name, module name, and the symbol of the kernel's configuration that builds it in.
const MODULES: [(&str, &str, &str); 11] = [
    ("overlay", "overlay", "OVERLAY_FS"),
    ("br_netfilter", "br_netfilter", "BRIDGE_NETFILTER"),
    ("ipvs", "ip_vs", "IP_VS"),
    ("nftables", "nf_tables", "NF_TABLES"),
    ("vxlan", "vxlan", "VXLAN"),
    ("ipip", "ipip", "NET_IPIP"),
    ("", "ip_vs_rr", "IP_VS_RR"),
    ("", "ip_vs_wrr", "IP_VS_WRR"),
    ("", "ip_vs_sh", "IP_VS_SH"),
    ("", "nf_conntrack", "NF_CONNTRACK"),
    ("", "veth", "VETH"),
];

fn modules(facts: &mut Facts, spec: &ProbeSpec, text: &str) {
    let (mut loaded, mut there) = (BTreeSet::new(), BTreeSet::new());
    for (kind, name) in text.lines().filter_map(|line| line.split_once(' ')) {
        // A file may use either spelling; the kernel knows only the underscore.
        let name = name.replace('-', "_");
        let module = match kind {
            "config" => {
                MODULES.iter().find(|module| module.2 == name).map_or(name, |module| module.1.to_owned())
            }
            _ => name,
        };
        if kind != "loadable" {
            loaded.insert(module.clone());
        }
        there.insert(module);
    }
    facts.modules =
        spec.modules.iter().filter(|name| loaded.contains(&name.replace('-', "_"))).cloned().collect();
    let features = MODULES.iter().filter(|module| !module.0.is_empty() && there.contains(module.1));
    facts.features = features.map(|module| module.0.to_owned()).collect();
}

fn cgroups(facts: &mut Facts, text: &str) {
    let mut managed = false;
    for line in text.lines() {
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        let memory = rest.split_whitespace().any(|name| name == "memory");
        match kind {
            "v2" => facts.cgroup_v2 = true,
            "managed" => managed = true,
            "systemd" => facts.systemd = true,
            _ => {}
        }
        if memory && matches!(kind, "v1" | "v2") {
            facts.features.insert("memory_cgroup".into());
        }
    }
    facts.systemd_cgroups = facts.systemd && (facts.cgroup_v2 || managed);
}

/// os-release(5): `NAME=value` with shell quotes.
fn release(facts: &mut Facts, text: &str) {
    for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
        let value = value.trim().trim_matches(['"', '\'']).to_owned();
        match name.trim() {
            "ID" => facts.os_id = value,
            "VERSION_ID" => facts.os_version = value,
            "PRETTY_NAME" => facts.os_name = value,
            _ => {}
        }
    }
}

/// Addresses from `ip -o addr`, or from `hostname -I`.
fn addresses(text: &str) -> BTreeSet<String> {
    let mut addresses = BTreeSet::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        match fields[..] {
            [_, _, "inet" | "inet6", address, ..] => {
                addresses.insert(address.split('/').next().unwrap_or(address).to_owned());
            }
            _ => addresses.extend(
                fields.iter().filter(|word| word.parse::<std::net::IpAddr>().is_ok()).map(|&w| w.to_owned()),
            ),
        }
    }
    addresses
}

/// Exit codes of timeout(1) at the time limit: GNU's, busybox' (128 + SIGTERM), and the code after a SIGKILL.
const TIMED_OUT: [i32; 3] = [124, 143, 137];

/// Parses the replies. The questions are numbered in the order of their names. A question without a section counts as failed,
/// because it was asked.
fn replies(spec: &ProbeSpec, sections: &Sections) -> Replies {
    let mut replies = Replies::new();
    for (number, (name, asked)) in spec.questions.iter().enumerate() {
        let (code, stdout) = sections.with_code(&format!("reply {number} ")).unwrap_or((-1, ""));
        let stderr = sections.get(&format!("error {number}")).unwrap_or_default().trim();
        let reply = Reply {
            stdout: stdout.to_owned(),
            code,
            stderr: stderr.chars().take(300).collect(),
            timed_out: TIMED_OUT.contains(&code).then_some(asked.seconds),
        };
        replies.insert(name.clone(), reply);
    }
    replies
}

fn first_word(text: &str) -> Option<String> {
    text.split_whitespace().next().map(str::to_owned)
}

/// Normalises kernel settings that consist of several numbers: the kernel separates them by tabs, people write one space.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_host_that_do_not_fit_are_no_numbers() {
        for (seconds, milliseconds) in [
            ("1.5", Some(1500)),
            ("9223372036854775.807", Some(i64::MAX)),
            ("9223372036854775.808", None),
            ("9223372036854775807", None),
            ("-9223372036854775808", None),
            ("9999999999999999999999", None),
        ] {
            assert_eq!(decimal_ms(seconds), milliseconds, "{seconds}");
        }
        for (clock, milliseconds) in [
            ("9223372036854775807", Some((9_223_372_036_854, 1))),
            ("999999999999", Some((999_999_999_999_000, 1000))),
            ("99999999999999999999", None),
        ] {
            assert_eq!(clock_ms(clock), milliseconds, "{clock}");
        }
    }

    #[test]
    fn a_file_of_any_time_was_written_at_some_uptime() {
        for (now_ms, up_ms, mtime_ms, written) in [
            (1000, 500, 900, 400),
            (1000, 500, i64::MIN, 0),
            (i64::MAX, 500, i64::MIN, 0),
            (0, i64::MAX, i64::MAX, 0),
            (0, i64::MIN, 0, 0),
        ] {
            assert_eq!(Clocks { now_ms, up_ms }.written_ms(mtime_ms), written, "{now_ms} {up_ms} {mtime_ms}");
        }
    }
}
