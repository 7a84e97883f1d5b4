//! What a simulated host answers to kk's probe, in the form of a real one.

use std::{fmt::Write as _, sync::PoisonError};

use super::{
    host::Host,
    shell::{list, questions},
};

/// Seconds since 1970, and the uptime, both in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    pub(super) now_ms: u128,
    pub(super) up_ms: u128,
}

/// Answers a probe's script.
pub(super) fn answer(host: &Host, script: &str, clock: Clock) -> String {
    let nonce = script.lines().find_map(|line| line.strip_prefix("KK_N=")).unwrap_or_default().to_owned();
    let mut text = String::new();
    let mut section = |name: &str, content: &str| {
        let _ = write!(text, "\n@{nonce} {name}\n{content}");
    };
    section("begun", &format!("{}000000\n", clock.now_ms));
    let (files, sums) = files(host, &list(script, "kk_files"), clock);
    section("files", &files);
    section("sums", &sums);
    section("links", "");
    section("units", &units(host, &list(script, "kk_units")));
    let tools = list(script, "kk_tools");
    section("tools", &tools.iter().fold(String::new(), |all, tool| all + tool + "\t/usr/bin/" + tool + "\n"));
    section("sysctls", &sysctls(host, &list(script, "kk_sysctls")));
    section("ports", "");
    section("users", &host.users.iter().fold(String::new(), |all, user| all + user + ":x:999:999::/:\n"));
    let disks = list(script, "kk_disks");
    let df = "Filesystem 1024-blocks Used Available Capacity Mounted on\n".to_owned();
    section("disks", &disks.iter().fold(df, |all, _| all + "/dev/vda1 100000000 10000000 90000000 10% /\n"));
    section("modules", &host.modules.iter().fold(String::new(), |all, name| all + "loaded " + name + "\n"));
    section("cgroups", "v2 cpuset cpu io memory hugetlb pids rdma misc\nsystemd\n");
    let kernel = format!(
        "{}\n6.1.0-18-amd64\nx86_64\n4\nMemTotal:        8000000 kB\n{}n\n{}000000\nCapBnd:\t000001ffffffffff\n",
        host.name,
        clock.up_ms * 1_000_000,
        clock.now_ms
    );
    section("kernel", &kernel);
    section("swaps", "Filename\tType\tSize\tUsed\tPriority\n");
    section("selinux", "");
    section("release", "ID=debian\nVERSION_ID=\"12\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n");
    section("resolv", "nameserver 192.0.2.53\n");
    section("addresses", &format!("2: eth0    inet {}/16 scope global eth0\n", host.address));
    section("owned", &host.owned.iter().fold(String::new(), |all, line| all + line + "\n"));
    for question in questions(script) {
        let (status, content) = value(host, &question.snippet);
        section(&format!("{} {} {status}", question.kind, question.number), &content);
    }
    section("ended", &format!("{}000000\n", clock.now_ms));
    text
}

fn files(host: &Host, patterns: &[String], clock: Clock) -> (String, String) {
    let (mut files, mut sums) = (String::new(), String::new());
    let fits = |path: &str| {
        patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => path.strip_prefix(prefix).is_some_and(|rest| !rest.contains('/')),
            None => pattern == path,
        })
    };
    for (path, file) in host.files.iter().filter(|(path, _)| fits(path)) {
        let kind = if file.directory { "directory" } else { "regular file" };
        let written = clock.now_ms + file.written_ms - clock.up_ms;
        let time = format!("{}.{:03}", written / 1000, written % 1000);
        let _ = writeln!(files, "{kind}\t{}\t{}\t100\t{time}\t{time}\t1\t{path}", file.mode, file.owner);
        if !file.directory {
            let _ = writeln!(sums, "{}  {path}", file.sha256);
        }
    }
    (files, sums)
}

fn units(host: &Host, names: &[String]) -> String {
    let mut text = String::new();
    for name in names {
        let unit = host.units.get(name);
        let there = unit.is_some() || host.files.contains_key(&format!("/etc/systemd/system/{name}"));
        let unit = unit.cloned().unwrap_or_default();
        let since = unit.active_since_ms.unwrap_or_default() * 1000;
        let _ = writeln!(
            text,
            "LoadState={}\nActiveState={}\nUnitFileState={}\nNeedDaemonReload=no\n\
             ActiveEnterTimestampMonotonic={since}\nStateChangeTimestampMonotonic={since}\n",
            if there { "loaded" } else { "not-found" },
            if unit.active_since_ms.is_some() { "active" } else { "inactive" },
            if unit.enabled { "enabled" } else { "disabled" },
        );
    }
    text
}

/// Names come as paths below `/proc/sys`.
fn sysctls(host: &Host, paths: &[String]) -> String {
    let value = |path: &String| host.sysctls.get(&path.replace('/', ".")).map_or("0", String::as_str);
    paths.iter().fold(String::new(), |all, path| all + "is\t" + path + "\t" + value(path) + "\n")
}

/// Exit code and answer of a question. One that is not known fails, as on a host that lacks the program.
fn value(host: &Host, snippet: &str) -> (u8, String) {
    let active = |unit: &str| host.units.get(unit).is_some_and(|unit| unit.active_since_ms.is_some());
    if snippet.starts_with("B=") {
        let path = snippet.rsplit(' ').next().unwrap_or_default();
        return (0, host.blocks.get(path).map(|block| format!("{block}\n")).unwrap_or_default());
    }
    if snippet.contains("/etc/machine-id") {
        return (0, host.machine_id() + "\n");
    }
    if snippet.contains("ctr -n k8s.io") {
        return (0, host.images.iter().fold(String::new(), |all, image| all + image + "\n"));
    }
    if snippet.contains("etcdctl") && active("etcd.service") {
        return (0, "healthy\n".to_owned());
    }
    if snippet.contains("kubectl") {
        let cluster = host.cluster.lock().unwrap_or_else(PoisonError::into_inner);
        return (0, if cluster.is_initialised() { cluster.answer(snippet) } else { "none\n".to_owned() });
    }
    if snippet.contains("BEGIN CERTIFICATE") {
        return (0, "end\n".to_owned());
    }
    if snippet.contains("kubekey/renewal/") {
        return (0, String::new());
    }
    if snippet.contains("kubelet-client-current.pem") {
        let cluster = host.cluster.lock().unwrap_or_else(PoisonError::into_inner);
        return (0, if cluster.is_initialised() { "yes\n" } else { "no\n" }.to_owned());
    }
    if ["/member ]", "wal.list", "/io.containerd.", "manage_etc_hosts"]
        .iter()
        .any(|words| snippet.contains(words))
    {
        return (0, "no\n".to_owned());
    }
    let nothing =
        ["firewall-cmd", "*.swap", "--hostname-override", "cgroupDriver", "/etc/containerd/config.toml"];
    if nothing.iter().any(|words| snippet.contains(words)) {
        return (0, String::new());
    }
    if snippet.contains("kube-controller-manager.yaml") || snippet.contains("/etc/etcd.env") {
        return (0, String::new());
    }
    (1, String::new())
}
