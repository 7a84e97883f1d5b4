//! A cluster of three control planes behind a load balancer gets other CAs by runs that are killed in each round. A client that
//! reads the administrator's kubeconfig for each request always gets an answer, and verifies the server. In the end, nothing
//! holds or trusts what the old CAs have signed.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;
use serde_json::Value;

use super::balanced;
use crate::checks;
use crate::context::Context;
use crate::host_state::expect_none;
use crate::report;
use crate::site::Site;

/// The mark of a rotation on a host.
const STAGE: &str = "cat /etc/kubekey/rotation/stage 2>/dev/null || echo 0";

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let lab = Site::fresh(ctx, &ctx.dir.join("site"), 4, None)?;
    let (site, _balancing) = balanced::site(ctx, &lab)?;
    ctx.kk_ok(&site, "create", &[])?;
    let (first, worker) = (site.control_plane().to_owned(), &lab.hosts[3]);
    let before = pods(ctx, &site)?;
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
    ctx.kk(&site, "create", &[])?.expect_code(5)?.expect_said(&["a CA rotation was started"])?;
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
    ctx.host(&first, include_str!("expect_old_refused.sh")).context("what is of before")?;
    let after = pods(ctx, &site)?;
    let kept: Vec<_> = before.intersection(&after).cloned().collect();
    expect_none(ctx, "a pod was not restarted, and knows the old CA only", &kept)?;
    ensure!(!site.workdir().join("lab/pki/rotation").exists(), "the old CAs are left on this machine");
    ctx.kubectl(&site, "get nodes").context("the kubeconfig on the control machine")?;
    checks::cluster_is_complete(ctx, &site)?;
    checks::create_changes_nothing(ctx, &site)?;
    // New kubelets are signed for by the new CA.
    ctx.host(worker, "rm /var/lib/kubelet/pki/kubelet-client-current.pem; systemctl stop kubelet")?;
    ctx.kk_ok(&site, "create", &[])?;
    ctx.host(worker, include_str!("expect_new.sh"))?;
    checks::cluster_is_complete(ctx, &site)?;

    // Deleting the cluster also removes an unfinished rotation.
    kill_after("0", Duration::from_secs(6))?;
    ctx.kk_ok(&site, "delete", &[])?;
    for host in &site.hosts {
        ctx.host(host, "[ ! -e /etc/kubekey/rotation ]")
            .with_context(|| format!("what a delete left on {host}"))?;
    }
    Ok(())
}

/// All pods except control plane pods, which kubelets start from files.
fn pods(ctx: &Context<'_>, site: &Site) -> Result<BTreeSet<String>> {
    let list = ctx.kubectl_json(site, "get pods -A")?;
    let of_api = checks::items(&list).filter(|pod| pod["metadata"]["ownerReferences"][0]["kind"] != "Node");
    let name = |pod: &Value| {
        format!("{} {}", checks::text(&pod["metadata"]["name"]), checks::text(&pod["metadata"]["uid"]))
    };
    let pods: BTreeSet<String> = of_api.map(name).collect();
    ensure!(pods.len() >= 10, "there are few pods: {pods:?}");
    Ok(pods)
}
