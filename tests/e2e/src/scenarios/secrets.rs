//! Passwords, tokens and keys appear in nothing that a run writes or shows, on the control machine or on a host.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use crate::context::Context;
use crate::host_state::expect_none;
use crate::kk::KkRun;
use crate::lab::SudoUser;
use crate::registry::Registry;
use crate::site::{Site, files_below};

const USER: SudoUser = SudoUser { name: "ada", password: "sentinel-sudo-9f2c41" };
const REGISTRY_PASSWORD: &str = "sentinel-registry-77ab03";

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let plain = Site::fresh(ctx, &ctx.dir.join("site"), 2, Some(USER))?;
    // The lab's registry needs no password; a configured password must not leak all the same.
    let site = plain.variant("with-registry-password", |cluster| {
        let auths = cluster["spec"]["registry"]["auths"].as_object_mut().into_iter().flatten();
        for (_, auth) in auths {
            auth["username"] = json!("robot");
            auth["password"] = json!(REGISTRY_PASSWORD);
        }
    })?;
    let mut shown = watched(ctx, &site, "create", &["--debug"])?;
    let secrets = secrets_of(ctx, &site)?;
    let mut found = on_hosts(ctx, &site, &secrets)?;
    shown.extend(watched(ctx, &site, "delete", &["--debug", "--all"])?);
    // A failing run prints the most.
    let registry = Registry::copy(ctx)?;
    registry.forget("pause")?;
    let lacking = site.variant("lacking", Registry::use_in)?;
    let failed = ctx.kk(&lacking, "create", &["--debug"])?;
    ensure!(
        failed.finished.code == Some(1),
        "a create without an image ended with {:?}",
        failed.finished.code
    );
    found.extend(leaks("process list", &shown.into_iter().collect::<Vec<_>>().join("\n"), &secrets));
    in_files(&ctx.dir, &plain, &secrets, &mut found)?;
    expect_none(ctx, "secrets leak", &found)
}

/// Runs `kk` and gathers every command line of this machine and of the hosts (their processes are visible here)
/// that is seen meanwhile.
fn watched(ctx: &Context<'_>, site: &Site, command: &str, more: &[&str]) -> Result<BTreeSet<String>> {
    let mut kk = ctx.kk_start(site, command, more)?;
    let mut seen = BTreeSet::new();
    while !kk.has_ended()? {
        for entry in fs::read_dir("/proc")?.flatten() {
            for file in ["cmdline", "environ"] {
                let bytes = fs::read(entry.path().join(file)).unwrap_or_default();
                let text = String::from_utf8_lossy(&bytes).replace('\0', " ");
                // The environments of the tests and of the lab are not kk's responsibility.
                if !text.is_empty() && !text.contains("KK_LAB_SUDO_PASSWORD") {
                    seen.insert(text);
                }
            }
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    KkRun::of(kk)?.expect_code(0)?;
    ensure!(seen.iter().any(|line| line.contains("kubelet")), "the watch saw no process of a host");
    Ok(seen)
}

/// Everything that must not be seen, with a description: configured secrets, and secrets that the run created.
fn secrets_of(ctx: &Context<'_>, site: &Site) -> Result<Vec<(String, String)>> {
    let mut secrets = vec![
        ("the sudo password".to_owned(), USER.password.to_owned()),
        ("the registry's password".to_owned(), REGISTRY_PASSWORD.to_owned()),
    ];
    let files = ctx.host(
        site.control_plane(),
        "find /etc/kubernetes /etc/ssl/etcd /var/lib/kubelet/pki -type f \\( -name '*.key' -o -name '*-key.pem' \\)",
    )?;
    ensure!(files.lines().count() > 4, "there are no keys on {}:\n{files}", site.control_plane());
    for file in files.lines() {
        let text = ctx.host(site.control_plane(), &format!("cat '{file}'"))?;
        // A line from the middle of the key: the first ones are the same in many keys.
        let line =
            text.lines().filter(|line| !line.contains("-----")).nth(1).context("a key has several lines")?;
        secrets.push((file.to_owned(), line.to_owned()));
    }
    let tokens = "kubectl --kubeconfig /etc/kubernetes/admin.conf -n kube-system get secrets --field-selector type=bootstrap.kubernetes.io/token -o jsonpath='{.items[*].data.token-secret}'";
    for token in ctx.host(site.control_plane(), tokens)?.split_whitespace() {
        let script = format!("echo {token} | base64 -d");
        secrets.push(("a bootstrap token".to_owned(), ctx.host(site.control_plane(), &script)?));
    }
    Ok(secrets)
}

fn leaks(place: &str, text: &str, secrets: &[(String, String)]) -> Vec<String> {
    let seen = secrets.iter().filter(|(_, secret)| text.contains(secret.as_str()));
    seen.map(|(what, _)| format!("{what}: in {place}")).collect()
}

/// World-readable files of the hosts that hold a secret.
fn on_hosts(ctx: &Context<'_>, site: &Site, secrets: &[(String, String)]) -> Result<Vec<String>> {
    let patterns: String = secrets.iter().flat_map(|(_, secret)| [secret.as_str(), "\n"]).collect();
    let script = "cat >/run/e2e-secrets; chmod 600 /run/e2e-secrets
        find /etc /home /opt /root /tmp /var/tmp /var/log /run /usr/local/etc -xdev -type f -perm -o=r -size -4096k -print0 |
          xargs -0 grep -lFf /run/e2e-secrets 2>/dev/null || true
        rm /run/e2e-secrets";
    let mut found = Vec::new();
    for host in &site.hosts {
        let files = ctx.run("grep", ctx.on_host(host, script).stdin(patterns.clone()))?.ok()?;
        found.extend(
            files.lines().map(|file| format!("a secret: in {file} of {host}, which everybody can read")),
        );
    }
    Ok(found)
}

/// Files of the control machine: what kk printed and all below its working directory. Only the vault and the
/// kubeconfig may hold secrets, and only for their owner.
fn in_files(dir: &Path, site: &Site, secrets: &[(String, String)], found: &mut Vec<String>) -> Result<()> {
    let mut files = [files_below(&site.workdir()), files_below(&site.home())].concat();
    // Programs from the mirror are large and hold nothing of this cluster.
    files.retain(|path| fs::metadata(path).is_ok_and(|file| file.len() < 4 << 20));
    for entry in fs::read_dir(dir.join("commands"))?.flatten() {
        if entry.file_name().to_string_lossy().contains("-kk-") {
            files.push(entry.path());
        }
    }
    ensure!(files.len() > 10, "only {} files were found to look into", files.len());
    for path in files {
        let bytes = fs::read(&path)?;
        let text = String::from_utf8_lossy(&bytes);
        let private = matches!(fs::metadata(&path)?.permissions().mode() & 0o777, 0o600 | 0o400);
        let may_hold =
            path.ends_with("kubeconfig") || path.components().any(|part| part.as_os_str() == "pki");
        if !(private && may_hold) {
            found.extend(leaks(&path.display().to_string(), &text, secrets));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::leaks;

    #[test]
    fn a_leak_names_what_and_where() {
        let secrets = [("the password".to_owned(), "s3cret".to_owned())];
        assert_eq!(leaks("log", "with s3cret in it", &secrets), ["the password: in log"]);
        assert!(leaks("log", "without", &secrets).is_empty());
    }
}
