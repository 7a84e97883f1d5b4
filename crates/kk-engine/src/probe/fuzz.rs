//! Random answers of hosts: the parser finds the facts that an answer describes, a truncated answer is refused, and the content of
//! a section changes no fact of another section.

use std::collections::BTreeMap;

use kk_test_common::fuzz::{Result, Unstructured, damaged, fuzz};
use serde_json::Value;

use super::parse;
use crate::{
    Facts, FileFact, Owned, ProbeSpec, UnitFact,
    question::{Asked, Reply},
};

const NONCE: &str = "n0nce";
/// When the script was sent, in milliseconds since 1970.
const SENT: i64 = 1_700_000_000_000;

/// Each section that the script always prints, with the facts that its content may change.
const SECTIONS: [(&str, &[&str]); 22] = [
    ("begun", &["clock_skew_ms", "clock_uncertainty_ms"]),
    ("ended", &["clock_skew_ms", "clock_uncertainty_ms"]),
    ("kernel", &["hostname", "kernel", "arch", "cpus", "memory_kib", "can_raise_limits", "files"]),
    ("files", &["files"]),
    ("sums", &["files"]),
    ("links", &["files"]),
    ("units", &["units"]),
    ("tools", &["tools"]),
    ("sysctls", &["sysctls", "sysctls_read_only"]),
    ("ports", &["ports"]),
    ("users", &["users"]),
    ("disks", &["disks"]),
    ("modules", &["modules", "features"]),
    ("cgroups", &["cgroup_v2", "systemd", "systemd_cgroups", "features"]),
    ("swaps", &["swaps"]),
    ("selinux", &["selinux"]),
    ("release", &["os_id", "os_version", "os_name"]),
    ("resolv", &["nameservers"]),
    ("addresses", &["addresses"]),
    ("owned", &["owned"]),
    ("reply 0 0", &["replies"]),
    ("error 1", &["replies"]),
];

fn spec() -> ProbeSpec {
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    let asked = |seconds| Asked { snippet: "true".to_owned(), seconds };
    ProbeSpec {
        files: texts(&["/etc/a", "/opt/bin/*"]),
        units: texts(&["a.service", "b.service", "c.mount"]),
        tools: texts(&["socat", "tar"]),
        sysctls: texts(&["net.ipv4.ip_forward", "net.ipv4.conf.eth0/100.rp_filter"]),
        ports: [22, 6443, 10250].into(),
        users: texts(&["etcd", "root"]),
        modules: texts(&["ip_vs_rr", "overlay", "nf-conntrack"]),
        disks: texts(&["/var/lib/etcd", "/"]),
        questions: [("one".to_owned(), asked(20)), ("two".to_owned(), asked(7))].into(),
    }
}

/// The sections of an answer, and the facts that they describe.
struct Host {
    sections: BTreeMap<String, String>,
    facts: Facts,
    /// When the answer arrived, and how far the host's clock is ahead.
    received: i64,
    skew: i64,
}

impl Host {
    fn any(u: &mut Unstructured<'_>) -> Result<Self> {
        let mut host = Self {
            sections: SECTIONS.iter().map(|(name, _)| ((*name).to_owned(), String::new())).collect(),
            facts: Facts::default(),
            received: 0,
            skew: u.int_in_range(-100_000..=100_000_i64)?,
        };
        host.clocks(u)?;
        host.files(u)?;
        host.units(u)?;
        host.kernel(u)?;
        host.settings(u)?;
        host.replies(u)?;
        Ok(host)
    }

    fn line(&mut self, section: &str, line: &str) {
        let text = self.sections.entry(section.to_owned()).or_default();
        text.push_str(line);
        text.push('\n');
    }

    fn clocks(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let begun = SENT + u.int_in_range(0..=5000)?;
        let ended = begun + u.int_in_range(0..=5000)?;
        self.received = ended + u.int_in_range(0..=5000)?;
        for (section, time) in [("begun", begun + self.skew), ("ended", ended + self.skew)] {
            // A `date` without nanoseconds prints seconds.
            let text =
                if u.ratio(1, 4)? { format!("{}", time.div_euclid(1000)) } else { format!("{time}000000") };
            self.line(section, &text);
        }
        Ok(())
    }

    fn kernel(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let facts = &mut self.facts;
        facts.hostname = (*u.choose(&["node1", "", "käse"])?).to_owned();
        facts.kernel = "6.1.0-20-amd64".to_owned();
        let machine = *u.choose(&["x86_64", "aarch64", "riscv64"])?;
        facts.arch = match machine {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        }
        .to_owned();
        facts.cpus = u.arbitrary()?;
        facts.memory_kib = u.arbitrary()?;
        facts.can_raise_limits = u.arbitrary()?;
        let capabilities = if facts.can_raise_limits { "000001ffffffffff" } else { "00000000a80425fb" };
        let lines = [
            facts.hostname.clone(),
            facts.kernel.clone(),
            machine.to_owned(),
            facts.cpus.to_string(),
            format!("MemTotal:       {} kB", facts.memory_kib),
            (if u.arbitrary()? { "5000000000000n" } else { "5000.00 1.5" }).to_owned(),
            format!("{SENT}000000"),
            format!("CapBnd:\t{capabilities}"),
        ];
        for line in &lines {
            self.line("kernel", line);
        }
        Ok(())
    }

    /// The uptime is 5000 s at `SENT`.
    fn files(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let paths = ["/etc/a", "/opt/bin/ x", "/opt/bin/a\tb", "/opt/bin/@n0nce files", "/opt/bin/ü"];
        for path in paths {
            let written = match u.int_in_range(0..=4)? {
                0 => continue,
                1 => 0,
                _ => u.int_in_range(1..=5_000_000_u64)?,
            };
            let kind =
                *u.choose(&["regular file", "regular empty file", "directory", "symbolic link", "fifo"])?;
            let mut fact = FileFact {
                mode: "644".to_owned(),
                owner: "root:root".to_owned(),
                written_ms: written,
                ..FileFact::default()
            };
            kind.split(' ')
                .next()
                .map_or("", |word| match word {
                    "regular" => "file",
                    "directory" => "dir",
                    "symbolic" => "link",
                    _ => "other",
                })
                .clone_into(&mut fact.kind);
            if fact.kind == "file" {
                fact.sha256 = "ab".repeat(32);
                self.line("sums", &format!("{}  {path}", fact.sha256));
            }
            // A path with a tab is ambiguous in a list of links.
            if fact.kind == "link" && !path.contains('\t') {
                fact.link = (*u.choose(&["a", "/x\ty"])?).to_owned();
                self.line("links", &format!("{path}\t{}", fact.link));
            }
            let mtime = SENT - 5_000_000 + i64::try_from(written).unwrap();
            let mtime = if written == 0 {
                "-1.500000000".to_owned()
            } else {
                format!("{}.{:03}000000", mtime / 1000, mtime % 1000)
            };
            self.line("files", &format!("{kind}\t644\troot:root\t1\t{mtime}\t1.0\t7\t{path}"));
            self.facts.files.insert(path.to_owned(), fact);
        }
        Ok(())
    }

    fn units(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        self.facts.systemd = u.ratio(3, 4)?;
        if !self.facts.systemd {
            return Ok(());
        }
        self.line("cgroups", "systemd");
        for name in spec().units {
            let load = if u.arbitrary()? { "loaded" } else { "not-found" };
            let fact = UnitFact {
                active: u.arbitrary()?,
                enabled: u.arbitrary()?,
                stale: u.arbitrary()?,
                active_since_ms: u64::from(u.arbitrary::<u32>()?),
                changed_since_ms: u64::from(u.arbitrary::<u32>()?),
            };
            let [active, enabled, stale] = [
                if fact.active { "active" } else { "activating" },
                if fact.enabled { "enabled" } else { "enabled-runtime" },
                if fact.stale { "yes" } else { "no" },
            ];
            self.line("units", &format!(
                "LoadState={load}\nActiveState={active}\nUnitFileState={enabled}\nNeedDaemonReload={stale}\n\
                 ActiveEnterTimestampMonotonic={}123\nStateChangeTimestampMonotonic={}000\n",
                fact.active_since_ms, fact.changed_since_ms
            ));
            if load == "loaded" {
                self.facts.units.insert(name, fact);
            }
        }
        Ok(())
    }

    fn settings(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        for name in spec().tools {
            let path = if u.arbitrary()? { format!("/usr/bin/{name}") } else { String::new() };
            self.line("tools", &format!("{name}\t{path}"));
            if !path.is_empty() {
                self.facts.tools.insert(name, path);
            }
        }
        for (name, path) in [
            ("net.ipv4.ip_forward", "net/ipv4/ip_forward"),
            ("net.ipv4.conf.eth0/100.rp_filter", "net/ipv4/conf/eth0.100/rp_filter"),
        ] {
            let value: u16 = u.arbitrary()?;
            self.line("sysctls", &format!("is\t{path}\t{value}\t 1"));
            self.facts.sysctls.insert(name.to_owned(), format!("{value} 1"));
            if u.arbitrary()? {
                self.line("sysctls", &format!("ro\t{path}"));
                self.facts.sysctls_read_only.insert(name.to_owned());
            }
        }
        for port in [22, 80, 6443, 10250] {
            let (line, program) = match u.int_in_range(0..=3)? {
                0 => (format!("LISTEN 0 128 [::]:{port} [::]:* users:((\"sshd\",pid=1,fd=3))"), "sshd"),
                1 => (format!("LISTEN 0 128 0.0.0.0:{port} 0.0.0.0:*"), ""),
                2 => (format!("  0: 00000000:{port:04X} 00000000:0000 0A 00000000"), ""),
                _ => continue,
            };
            self.line("ports", &line);
            if port != 80 {
                self.facts.ports.insert(port, program.to_owned());
            }
        }
        for user in ["root", "etcd", "mallory"] {
            if u.arbitrary()? {
                self.line("users", user);
                self.facts.users.extend((user != "mallory").then(|| user.to_owned()));
            }
        }
        for path in spec().disks {
            self.line("disks", &format!("of\t{path}"));
            if u.arbitrary()? {
                let (size, free) = u.arbitrary::<(u64, u64)>()?;
                self.line("disks", "Filesystem     1024-blocks    Used Available Capacity Mounted on");
                self.line("disks", &format!("my disk {size} 7 {free} 20% /"));
                self.facts.disks.insert(path, (size, free));
            }
        }
        for (line, name) in [
            ("loaded overlay", "overlay"),
            ("config IP_VS_RR", "ip_vs_rr"),
            ("loaded nf_conntrack", "nf-conntrack"),
        ] {
            if u.arbitrary()? {
                self.line("modules", line);
                self.facts.modules.insert(name.to_owned());
                self.facts.features.extend((name == "overlay").then(|| name.to_owned()));
            }
        }
        if u.arbitrary()? {
            self.line("cgroups", "v2 cpu memory pids");
            self.facts.cgroup_v2 = true;
            self.facts.systemd_cgroups = self.facts.systemd;
            self.facts.features.insert("memory_cgroup".to_owned());
        }
        if u.arbitrary()? {
            self.line("swaps", "Filename Type Size Used Priority\n/dev/sda2 partition 1 0 -2");
            self.facts.swaps.push("/dev/sda2".to_owned());
        }
        self.line("release", "PRETTY_NAME=\"Debian GNU/Linux 12\"\nID=debian\nVERSION_ID='12'\nVERSION=x");
        let release = ["Debian GNU/Linux 12", "debian", "12"].map(str::to_owned);
        [self.facts.os_name, self.facts.os_id, self.facts.os_version] = release;
        self.line("resolv", "# nameserver 9.9.9.9\nnameserver 192.0.2.53\nsearch example.com");
        self.facts.nameservers.push("192.0.2.53".to_owned());
        self.line("addresses", "2: eth0    inet 192.0.2.1/24 brd 192.0.2.255 scope global eth0");
        self.facts.addresses.insert("192.0.2.1".to_owned());
        self.line("selinux", if u.arbitrary()? { "1" } else { "enforcing" });
        self.facts.selinux = "enforcing".to_owned();
        let mut lines = vec!["cluster\tprod\tab12\t77aa"];
        for line in ["made\t/etc/a", "dir\t/opt", "unit-off\tx.service\tenabled\tactive", "future"] {
            lines.extend(u.arbitrary::<bool>()?.then_some(line));
        }
        self.line("owned", &lines.join("\n"));
        self.facts.owned = Owned::from(lines);
        Ok(())
    }

    fn replies(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let printed = *u.choose(&["yes\n", "", "@other ended\n1\n", "no newline", "\n@n0ncé ended\n17\n"])?;
        self.sections.insert("reply 0 0".to_owned(), printed.to_owned());
        let (code, timed_out) = *u.choose(&[(0, None), (1, None), (124, Some(7)), (137, Some(7))])?;
        self.sections.insert(format!("reply 1 {code}"), printed.to_owned());
        let error = "é".repeat(u.int_in_range(0..=400)?);
        self.line("error 1", &error);
        let stderr = error.chars().take(300).collect();
        let reply = |code, stderr, timed_out| Reply { stdout: printed.to_owned(), code, stderr, timed_out };
        self.facts.replies = [
            ("one".to_owned(), reply(0, String::new(), None)),
            ("two".to_owned(), reply(code, stderr, timed_out)),
        ]
        .into();
        Ok(())
    }

    /// The answer, with the end of the script as its last section.
    fn text(&self) -> String {
        let mut names: Vec<_> = self.sections.keys().collect();
        names.sort_by_key(|name| *name == "ended");
        let section = |name: &String| format!("\n@{NONCE} {name}\n{}", self.sections[name]);
        names.into_iter().map(section).collect()
    }

    fn parse(&self, text: &str) -> std::result::Result<Facts, String> {
        parse(&spec(), NONCE, text, (SENT, self.received))
    }
}

#[test]
fn fuzz_answers_of_probes() {
    fuzz("answers of probes", |u| {
        let host = Host::any(u)?;
        let text = host.text();
        let mut facts = host.parse(&text).unwrap();
        let (skew, unsure) = (facts.clock_skew_ms, facts.clock_uncertainty_ms);
        assert!((skew - host.skew).abs() <= unsure + 1, "{skew} {unsure} {}", host.skew);
        (facts.clock_skew_ms, facts.clock_uncertainty_ms) = (0, 0);
        assert_eq!(facts, host.facts, "{text}");

        let end = text.rfind(&format!("\n@{NONCE} ended\n")).unwrap();
        let cut = u.choose_index(end + NONCE.len() + 9)?;
        if text.is_char_boundary(cut) {
            assert!(host.parse(&text[..cut]).is_err(), "{}", &text[..cut]);
        }
        Ok(true)
    });
}

/// The facts, without those that these sections may change.
fn without(facts: &Facts, fields: &[&str]) -> Value {
    let mut value = serde_json::to_value(facts).unwrap();
    value.as_object_mut().unwrap().retain(|field, _| !fields.contains(&field.as_str()));
    value
}

#[test]
fn fuzz_damaged_answers_of_probes() {
    let spec = spec();
    let pieces: Vec<&[u8]> = [
        "\n",
        "\n\n",
        "\t",
        " ",
        "=",
        ":",
        "-",
        ".",
        "%",
        "n",
        "0",
        "9223372036854775807",
        "18446744073709551616",
        "ü",
        "\n@other kernel\n",
        "\n@n0nceended\n",
        "@n0nce ended\n",
        "((\"",
        "LISTEN",
        " 0A ",
        "of\t",
        "is\t",
        "regular file\t644\troot:root\t1\t1.0\t1.0\t7\t/",
        "LoadState=loaded\n",
        "inet6 ",
        "cluster\ta\tb\tc\n",
    ]
    .map(str::as_bytes)
    .to_vec();
    fuzz("damaged answers of probes", |u| {
        let mut host = Host::any(u)?;
        let whole = host.parse(&host.text()).unwrap();
        let (name, fields) = *u.choose(&SECTIONS)?;
        let section = host.sections.get_mut(name).unwrap();
        let bytes = damaged(section.as_bytes(), &pieces, u)?;
        // Only root reads the random word, and the script prints it nowhere else.
        *section = String::from_utf8_lossy(&bytes).replace(&format!("@{NONCE} "), "");
        let text = host.text();
        let Ok(facts) = host.parse(&text) else { return Ok(false) };
        assert_eq!(without(&facts, fields), without(&whole, fields), "{name}\n{text}");
        assert!(facts.units.keys().all(|unit| spec.units.contains(unit)), "{text}");
        assert!(facts.ports.keys().all(|port| spec.ports.contains(port)), "{text}");
        assert!(facts.users.is_subset(&spec.users) && facts.modules.is_subset(&spec.modules), "{text}");
        assert!(facts.replies.keys().eq(spec.questions.keys()), "{text}");
        let size = serde_json::to_string(&facts).unwrap().len();
        assert!(size < 4000 + 8 * text.len(), "{size} {text}");
        Ok(true)
    });
}
