//! Three hosts that have all roles, with haproxy in the file: each uses its own API server, and haproxy is installed on no host. When
//! one host has no power, the others keep working.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::{address, queried_at, uses_itself, with_balancer};
use crate::context::Context;
use crate::site::Site;

const PATIENCE: Duration = Duration::from_mins(2);
const CONDITIONS: &str =
    "{range .items[*]}{.metadata.name} {.status.conditions[?(@.type==\"Ready\")].status}{\"\\n\"}{end}";

pub(in super::super) fn run(ctx: &Context<'_>) -> Result<()> {
    let lab = Site::fresh(ctx, &ctx.dir.join("site"), 3, None)?;
    let site = with_balancer(&lab, "three", "haproxy")?.variant("three", |cluster| {
        let all = &lab.hosts;
        cluster["spec"]["roleGroups"] = json!({"etcd": all, "control-plane": all, "worker": all});
    })?;
    let notes = ctx.kk_ok(&site, "create", &[])?.events.found("adapted");
    let is_reported = notes.iter().any(|note| note.contains("haproxy is installed on no host"));
    ensure!(is_reported, "kk did not report that haproxy is installed on no host: {notes:?}");
    uses_itself(ctx, &site)?;
    for host in &site.hosts {
        ctx.host(host, "[ ! -e /etc/kubernetes/manifests/haproxy.yaml ]")?;
    }

    let [lost, rest @ ..] = &site.hosts[..] else { anyhow::bail!("three hosts") };
    ctx.power(lost, "off")?;
    let at = queried_at(&site, &rest[0]);
    ctx.until("only the lost node is not Ready", PATIENCE, || {
        let Ok(said) = ctx.kubectl(&at, &format!("get nodes -o jsonpath='{CONDITIONS}'")) else {
            return Ok(None);
        };
        let ready = |host: &str| said.lines().any(|line| line == format!("{host} True"));
        Ok((!ready(lost) && rest.iter().all(|host| ready(host))).then_some(()))
    })?;
    for host in rest {
        let by_name = "curl --silent --max-time 5 --cacert /etc/kubernetes/pki/ca.crt https://lb.kubesphere.local:6443/readyz";
        let said = ctx.host(host, by_name).with_context(|| format!("the API of {host}"))?;
        ensure!(said == "ok", "the API of {host} ({}) is `{said}`", address(&site, host)?);
    }
    ctx.kk(&site, "create", &[])?.expect_code(6)?.expect_said(&[lost])?;
    Ok(())
}
