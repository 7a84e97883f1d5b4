//! What a simulated host answers to kk's probe, in the form of a real one.

use std::{fmt::Write as _, sync::PoisonError};

use super::{
    disk::View,
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
    let df = |path: &String| format!("of\t{path}\n/dev/vda1 100000000 10000000 90000000 10% /\n");
    section("disks", &disks.iter().map(df).collect::<String>());
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
        let (code, content) = reply(host, &question.snippet);
        section(&format!("reply {} {code}", question.number), &content);
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

/// Exit code and answer of a question. What asks the API, etcd or containerd is answered by the state of the
/// simulation, all else by a shell that looks at the host's files.
fn reply(host: &Host, snippet: &str) -> (u8, String) {
    // The sum of the block in a file, which holds nothing else here.
    if let Some(file) = snippet.strip_suffix(" | sha256sum | cut -c 1-64") {
        let path = file.rsplit(' ').next().unwrap_or_default();
        return (0, host.files.get(path).map(|file| file.sha256.clone()).unwrap_or_default());
    }
    if snippet.contains("ctr -n k8s.io") {
        return (0, host.images.iter().fold(String::new(), |all, image| all + image + "\n"));
    }
    if snippet.contains("etcdctl ") {
        let active = host.units.get("etcd.service").is_some_and(|unit| unit.active_since_ms.is_some());
        return (0, if active { "yes\n" } else { "no\n" }.to_owned());
    }
    // The question where the name of the API leads asks the API only where that is somewhere else.
    if snippet.contains("kubectl --server ") && host.files.contains_key("/etc/kubernetes/admin.conf") {
        let cluster = host.cluster.lock().unwrap_or_else(PoisonError::into_inner);
        return (0, cluster.answer(snippet));
    }
    let machine_id = host.machine_id();
    // What each host answers in its own way needs no shell: one a host would take longer than all else.
    if snippet.starts_with("cat /etc/machine-id ") {
        return (0, machine_id);
    }
    if snippet.contains("--hostname-override=(") {
        let is_node = host.files.contains_key("/etc/systemd/system/kubelet.service.d/10-kubeadm.conf");
        return (0, if is_node { format!("{}\n", host.name) } else { String::new() });
    }
    // The hosts booted an hour ago.
    if snippet.starts_with("pods_known=") {
        return (0, "yes\n".to_owned());
    }
    let view = View { files: &host.files, units: &host.units, machine_id: &machine_id };
    host.disk.run(snippet, view).unwrap_or_else(|error| (1, format!("{error:#}\n")))
}
