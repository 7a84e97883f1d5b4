//! Writes the probe's script: the lists of a [`ProbeSpec`] as shell functions, followed by `probe.sh`.

use std::fmt::Write as _;

use kk_connector::quote;

use crate::{ProbeSpec, shell};

/// Features that are always probed, as modules.
const FEATURE_MODULES: [&str; 5] = ["overlay", "br_netfilter", "ip_vs", "nf_tables", "vxlan"];

/// The script for a host. `nonce` frames its output; pass the same nonce to [`super::parse`].
pub fn probe_script(spec: &ProbeSpec, nonce: &str) -> String {
    let mut text = format!("{}KK_N={nonce}\n", shell::RESET);
    let modules = FEATURE_MODULES.iter().copied().chain(spec.modules.iter().map(String::as_str));
    list(&mut text, "kk_files", spec.files.iter().map(|path| glob(path)));
    list(&mut text, "kk_units", spec.units.iter().map(|word| quote(word).into_owned()));
    list(&mut text, "kk_tools", spec.tools.iter().map(|word| quote(word).into_owned()));
    list(&mut text, "kk_sysctls", spec.sysctls.iter().map(|name| quote(&swap_separators(name)).into_owned()));
    list(&mut text, "kk_ports", spec.ports.iter().map(u16::to_string));
    list(&mut text, "kk_users", spec.users.iter().map(|word| quote(word).into_owned()));
    list(&mut text, "kk_modules", modules.filter(|name| is_module_name(name)).map(str::to_owned));
    list(&mut text, "kk_disks", spec.disks.iter().map(|word| quote(word).into_owned()));
    text.push_str("kk_questions() {\n    :\n");
    for (number, asked) in spec.questions.values().enumerate() {
        let (snippet, seconds) = (quote(&asked.snippet), asked.seconds);
        let _ = writeln!(
            text,
            "    {{ timeout -k 2 {seconds} sh -c {snippet} </dev/null >reply.{number} 2>error.{number}; echo $? >code.{number}; }} &"
        );
    }
    text.push_str("}\n");
    text + include_str!("../probe.sh")
}

fn list(text: &mut String, name: &str, words: impl Iterator<Item = String>) {
    let _ =
        writeln!(text, "{name}() {{ \"$@\"{}; }}", words.fold(String::new(), |all, word| all + " " + &word));
}

/// Quotes a path except `*` and `?`, which the shell must expand.
fn glob(path: &str) -> String {
    let mut text = String::new();
    let mut rest = path;
    while let Some(at) = rest.find(['*', '?']) {
        if at > 0 {
            text.push_str(&quote(&rest[..at]));
        }
        text.push_str(&rest[at..=at]);
        rest = &rest[at + 1..];
    }
    if !rest.is_empty() {
        text.push_str(&quote(rest));
    }
    text
}

/// Converts between a kernel setting's dotted name and its path below `/proc/sys`: `.` and `/` are swapped (sysctl.d(5)), as in
/// `net.ipv4.conf.eth0/100.rp_filter`.
pub(super) fn swap_separators(name: &str) -> String {
    let swap = |c| match c {
        '.' => '/',
        '/' => '.',
        c => c,
    };
    name.chars().map(swap).collect()
}

/// Whether a name is safe to use in a regular expression of `sed`.
fn is_module_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}
