//! A cluster of three control planes behind a load balancer gets other CAs by runs that are killed in each round. Whoever reads
//! the administrator's kubeconfig for each question is answered all the while, and verifies who answers. In the end nothing
//! holds or trusts what the old CAs have signed.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;
use serde_json::json;

use crate::checks;
use crate::context::Context;
use crate::report;
use crate::site::{Site, host_entry};

/// The mark of a rotation on a host.
const STAGE: &str = "cat /etc/kubekey/rotation/stage 2>/dev/null || echo 0";

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let lab = Site::fresh(ctx, &ctx.dir.join("site"), 4, None)?;
    let mut cluster = lab.read()?;
    let mut address = |host: &String| checks::text(&host_entry(&mut cluster, host)["address"]);
    let (control_planes, balancer) = (&lab.hosts[..3], &lab.hosts[3]);
    let servers: Vec<String> = control_planes.iter().map(&mut address).collect();
    let endpoint = address(balancer);
    let site = lab.variant("ha", |cluster| {
        cluster["spec"]["roleGroups"] =
            json!({"etcd": control_planes, "control-plane": control_planes, "worker": [balancer]});
        cluster["spec"]["controlPlaneEndpoint"] =
            json!({"domain": "api.lab.local", "address": endpoint, "port": 16443});
    })?;
    let balance = format!("servers='{}'\n{}", servers.join(" "), super::upgrade::BALANCE);
    let _balancing = ctx.start("balance", ctx.on_host(balancer, &balance).limit(Duration::from_mins(20)))?;
    ctx.kk_ok(&site, "create", &[])?;
    let first = site.control_plane().to_owned();
    ctx.host(&first, "cp /etc/kubernetes/admin.conf /tmp/old.conf; cp /etc/kubernetes/pki/ca.crt /tmp/old-ca.crt; cp /etc/ssl/etcd/ssl/ca.pem /tmp/old-etcd-ca.pem")?;

    let asking = ctx.on_host(&first, include_str!("ask_verified.sh")).limit(Duration::from_mins(15));
    let asking = ctx.start("ask-verified", asking)?;
    let words = ["certs", "rotate-ca", "-y", "--output", "json"];
    let kill_after = |stage: &str, pause: Duration| -> Result<()> {
        let mut killed = ctx.start("kk-rotate-killed", ctx.kk_job(&site, &words))?;
        ctx.await_task(&mut killed, "ca-rotation/rotate_etcd")?;
        ctx.until(&format!("round {stage} has ended"), Duration::from_mins(5), || {
            ensure!(!killed.has_ended()?, "kk ended before it could be killed");
            Ok((ctx.host(&first, STAGE)?.trim() == stage).then_some(()))
        })?;
        std::thread::sleep(pause);
        killed.signal(Signal::KILL)?;
        ensure!(killed.wait()?.code.is_none(), "kk had ended before it could be killed");
        Ok(())
    };
    kill_after("0", Duration::from_secs(6))?;
    ctx.kk(&site, "create", &[])?.expect_code(5)?.expect_said(&["the replacement of the CAs has begun"])?;
    kill_after("1", Duration::from_secs(15))?;
    kill_after("2", Duration::from_secs(8))?;
    ctx.kk_nodes(&site, &["certs", "rotate-ca"])?.expect_code(0)?;

    ctx.host(&first, "touch /tmp/asking.stop")?;
    let asked = asking.wait()?.ok()?;
    let last = asked.lines().last().unwrap_or_default().to_owned();
    report::line(&format!("through the endpoint, verified: {last}"));
    ensure!(last.ends_with(" 0 refused"), "the API refused requests:\n{asked}");

    for host in &site.hosts {
        ctx.host(host, include_str!("expect_new.sh")).with_context(|| format!("what {host} holds"))?;
    }
    let old = ctx.try_host(&first, "kubectl --kubeconfig /tmp/old.conf --request-timeout 5s get nodes")?;
    ensure!(old.code != Some(0), "the kubeconfig of before still works");
    let ca = ctx.host(&first, "openssl x509 -in /etc/kubernetes/pki/ca.crt -noout -fingerprint")?;
    let before = ctx.host(&first, "openssl x509 -in /tmp/old-ca.crt -noout -fingerprint")?;
    ensure!(ca != before, "the CA of the cluster is the one of before");
    ensure!(
        ctx.host(&first, "cmp -s /tmp/old-etcd-ca.pem /etc/ssl/etcd/ssl/ca.pem && echo same || echo other")?
            .trim()
            == "other",
        "the CA of etcd is the one of before"
    );
    ensure!(!site.workdir().join("lab/pki/rotation").exists(), "the old CAs are left on this machine");
    ctx.kubectl(&site, "get nodes").context("the kubeconfig on the control machine")?;
    checks::cluster_is_complete(ctx, &site)?;
    let again = ctx.kk_ok(&site, "create", &[])?;
    ensure!(again.events.finished()?.changed == 0, "a create after the rotation changed something");
    // New kubelets are signed for by the new CA.
    ctx.host(balancer, "rm /var/lib/kubelet/pki/kubelet-client-current.pem; systemctl stop kubelet")?;
    ctx.kk_ok(&site, "create", &[])?;
    ctx.host(balancer, include_str!("expect_new.sh"))?;
    checks::cluster_is_complete(ctx, &site)?;

    // One that is given up goes with its cluster.
    kill_after("0", Duration::from_secs(6))?;
    ctx.kk_ok(&site, "delete", &[])?;
    for host in &site.hosts {
        ctx.host(host, "[ ! -e /etc/kubekey/rotation ]")
            .with_context(|| format!("what a delete left on {host}"))?;
    }
    Ok(())
}
