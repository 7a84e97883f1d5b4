//! Three control planes whose certificates expire in a few minutes renew them by their timers, which all begin at once. They
//! renew one after the other, and at most one API server is unavailable at any time. The next `kk` reports a renewal that failed.
//! When the timers are switched off, nothing of them stays.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::certificates::SIGN;
use crate::checks;
use crate::context::Context;
use crate::host_state::{self, expect_none};
use crate::site::{Site, host_entry, use_control_plane};

/// On a control plane: certificates of the API server, of the scheduler and of administrators.
const ENDS_SOON: &str = "
for name in apiserver apiserver-kubelet-client; do
    sign $pki/$name.crt $pki/$name.key $pki/ca.crt $pki/ca.key '-300 days' '+15 minutes'
done
for name in admin scheduler; do sign_kubeconfig /etc/kubernetes/$name.conf '-300 days' '+15 minutes'; done
cp /etc/kubernetes/admin.conf /root/.kube/config
";

/// Lets the timer begin now.
const NOW: &str = "
mkdir -p /etc/systemd/system/k8s-certs-renew.timer.d
printf '[Timer]\\nOnCalendar=\\nOnActiveSec=1s\\n' >/etc/systemd/system/k8s-certs-renew.timer.d/now.conf
systemctl daemon-reload
systemctl restart k8s-certs-renew.timer
";

const NOT_NOW: &str = "
rm -r /etc/systemd/system/k8s-certs-renew.timer.d
systemctl daemon-reload
systemctl restart k8s-certs-renew.timer
";

/// Fails with the name of a certificate that is not valid for another 300 days.
const RENEWED: &str = "
check() { openssl x509 -noout -checkend 25920000 >/dev/null || { echo \"$1 is not renewed\" >&2; exit 1; }; }
for name in apiserver apiserver-kubelet-client; do check $name </etc/kubernetes/pki/$name.crt; done
for file in /etc/kubernetes/admin.conf /etc/kubernetes/scheduler.conf /root/.kube/config; do
    sed -n 's/^ *client-certificate-data: *//p' $file | base64 -d | check $file
done
";

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let lab = Site::fresh(ctx, &ctx.dir.join("site"), 3, None)?;
    let before = host_state::of_all(ctx, &lab.hosts)?;
    let site = lab.variant("on", |cluster| {
        cluster["spec"]["roleGroups"]["control-plane"] = json!(lab.hosts);
        use_control_plane(cluster, &lab.hosts[0]);
        cluster["spec"]["kubernetes"]["autoRenewCerts"] = json!(true);
    })?;
    ctx.kk_ok(&site, "create", &[])?;
    ensure!(ctx.kk_ok(&site, "create", &[])?.events.changes().is_empty(), "create again changed something");
    all_begin_at_once(ctx, &site).context("timers that begin at once")?;
    a_failure_is_found(ctx, &site).context("a renewal that fails")?;

    let off =
        site.variant("off", |cluster| cluster["spec"]["kubernetes"]["autoRenewCerts"] = json!(false))?;
    ctx.kk_ok(&off, "create", &[])?;
    for host in &site.hosts {
        let left = ctx.host(host, "find /etc /usr/local /run /var/lib/systemd -name '*k8s-certs-renew*'")?;
        ensure!(left.is_empty(), "{host} still has {left}");
    }
    ensure!(
        ctx.kk_ok(&off, "create", &[])?.events.changes().is_empty(),
        "switched off again changed something"
    );

    ctx.kk_ok(&site, "create", &[])?;
    ctx.kk_ok(&site, "delete", &["-A"])?;
    host_state::expect_restored(ctx, &before)
}

fn all_begin_at_once(ctx: &Context<'_>, site: &Site) -> Result<()> {
    for host in &site.hosts {
        ctx.host(host, &format!("{SIGN}\n{ENDS_SOON}"))?;
    }
    let mut cluster = site.read()?;
    let servers: Vec<String> =
        site.hosts.iter().map(|host| checks::text(&host_entry(&mut cluster, host)["address"])).collect();
    let ask = format!("servers='{}'\n{}", servers.join(" "), include_str!("ask.sh"));
    let asking = ctx.start("ask", ctx.on_host(site.control_plane(), &ask).limit(Duration::from_mins(10)))?;
    let starts: Vec<_> =
        site.hosts.iter().map(|host| ctx.start(host, ctx.on_host(host, NOW))).collect::<Result<_>>()?;
    for start in starts {
        start.wait()?.ok()?;
    }
    for host in &site.hosts {
        ctx.until("the timer has renewed what ends", Duration::from_mins(5), || {
            let words = "systemctl show -p ActiveState -p Result k8s-certs-renew.service | sort | tr '\\n' ' '; journalctl -u k8s-certs-renew -o cat";
            let said = ctx.host(host, words)?;
            ensure!(!said.contains("ActiveState=failed"), "{host}: {said}");
            Ok((said.contains("ActiveState=inactive") && said.contains("renewed: ")).then_some(()))
        })?;
        ctx.host(host, RENEWED)?;
    }
    ctx.host(site.control_plane(), "touch /tmp/asked.stop")?;
    let asked = asking.wait()?.ok()?;
    let most = asked.lines().find_map(|line| line.strip_prefix("most away ")?.parse::<u32>().ok());
    ensure!(most == Some(1), "of three API servers were away at once, at most: {asked}");
    ensure!(
        ctx.kubectl(site, "-n kube-system get lease k8s-certs-renew").is_err(),
        "the Lease is still there"
    );
    for host in &site.hosts {
        ctx.host(host, NOT_NOW)?;
    }
    let again = ctx.kk_ok(site, "create", &[])?;
    let mut changes: Vec<String> = again.events.changes().iter().map(ToString::to_string).collect();
    // The control machine has the previous kubeconfig, and a run that changes something verifies the cluster.
    changes
        .retain(|change| !["kubeconfig/save_kubeconfig", "verify/"].iter().any(|one| change.contains(one)));
    expect_none(ctx, "create still has something to do", &changes)?;
    checks::cluster_is_complete(ctx, site)
}

fn a_failure_is_found(ctx: &Context<'_>, site: &Site) -> Result<()> {
    let (host, directory) = (site.control_plane(), "/etc/systemd/system/k8s-certs-renew.service.d");
    let fails = format!(
        "mkdir {directory}; printf '[Service]\\nExecStartPre=/bin/false\\n' >{directory}/fail.conf; systemctl daemon-reload"
    );
    ctx.host(host, &fails)?;
    ensure!(ctx.host(host, "systemctl start k8s-certs-renew").is_err(), "it has not failed");
    let found = |site: &Site| -> Result<bool> {
        let warnings = ctx.kk_ok(site, "create", &[])?.events.found("warning");
        Ok(warnings
            .iter()
            .any(|line| line.contains("the last renewal of certificates by the timer failed (exit-code)")))
    };
    ensure!(found(site)?, "kk does not say that it has failed");
    ctx.host(host, &format!("rm -r {directory}; systemctl daemon-reload; systemctl start k8s-certs-renew"))?;
    let said = ctx.host(host, "journalctl -u k8s-certs-renew -o cat | grep 'nothing to renew'")?;
    ensure!(said.contains("the first certificate ends on"), "{said}");
    ensure!(!found(site)?, "kk still says that it has failed");
    Ok(())
}
