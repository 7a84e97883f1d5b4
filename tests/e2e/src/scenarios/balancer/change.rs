//! The file changes the load balancer of a running cluster: none, haproxy, a load balancer of the user, haproxy, none. Each change
//! is one create. A run is killed in the middle of the first change, and the next one completes it.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::Signal;
use serde_json::json;

use super::super::{balanced, endpoint};
use super::{HAPROXY, address, uses_itself, with_balancer};
use crate::checks;
use crate::context::Context;
use crate::site::Site;

const CREATE: [&str; 5] = ["create", "cluster", "-y", "--output", "json"];
const NO_HAPROXY: &str = "[ ! -e /etc/kubernetes/manifests/haproxy.yaml ] && [ ! -e /etc/kubekey/haproxy ]";

pub(in super::super) fn run(ctx: &Context<'_>) -> Result<()> {
    let direct = Site::booted(ctx, &ctx.dir.join("site"), 3, None, &HAPROXY)?;
    let [first, worker, balancer] = &direct.hosts[..] else { bail!("three hosts") };
    let (old, external) = (address(&direct, first)?, address(&direct, balancer)?);
    ctx.kk_ok(&direct, "create", &[])?;
    let units = checks::invocations(ctx, &direct)?;
    let haproxy = with_balancer(&direct, "haproxy", "haproxy")?;
    ctx.kk_nodes(&haproxy, &["certs", "renew"])?
        .expect_code(5)?
        .expect_said(&["kk create cluster moves it"])?;
    for (job, task) in [("kk-killed-1", "balancer/run_haproxy"), ("kk-killed-2", "balancer/finish_moves")] {
        let mut killed = ctx.start(job, ctx.kk_job(&haproxy, &CREATE))?;
        ctx.await_task(&mut killed, task)?;
        killed.signal(Signal::KILL)?;
        ensure!(killed.wait()?.code.is_none(), "kk had ended before it could be killed in {task}");
    }
    ctx.kk_ok(&haproxy, "create", &[])?;
    uses_itself(ctx, &haproxy).context("with haproxy")?;
    checks::service_answers_across_nodes(ctx, &haproxy)?;

    ctx.kk_ok(&direct, "create", &[])?;
    endpoint::leads(ctx, &direct, &old).context("with a control plane again")?;
    for host in [worker, balancer] {
        ctx.host(host, NO_HAPROXY).with_context(|| format!("haproxy is left on {host}"))?;
    }
    checks::cluster_is_complete(ctx, &direct)?;
    checks::create_changes_nothing(ctx, &direct)?;

    // A load balancer of the user, on the host of a node, whose port 6443 is free only now.
    let balancing = balanced::balance(ctx, balancer, 6443, std::slice::from_ref(&old))?;
    ctx.until("the load balancer answers", Duration::from_secs(20), || {
        let asked =
            ctx.host(worker, &format!("curl -sk --max-time 2 https://{external}:6443/readyz || true"))?;
        Ok((asked.trim() == "ok").then_some(()))
    })?;
    let own = direct.variant("own", |cluster| {
        cluster["spec"]["controlPlaneEndpoint"]["address"] = json!(external);
    })?;
    ctx.kk_ok(&own, "create", &[])?;
    endpoint::leads(ctx, &own, &external).context("with a load balancer of the user")?;
    drop(balancing);
    ctx.until("the load balancer is gone", Duration::from_secs(20), || {
        let asked = ctx.host(balancer, "ss -Hltn 'sport = :6443'")?;
        Ok(asked.trim().is_empty().then_some(()))
    })?;
    ctx.kk_ok(&haproxy, "create", &[]).context("from a lost load balancer to haproxy")?;
    uses_itself(ctx, &haproxy)?;
    ensure!(checks::invocations(ctx, &direct)? == units, "a unit was restarted");
    Ok(())
}
