//! Certificates shortly before and after their expiry. A certificate with 59 days left only causes a warning. When the
//! certificates of the API server, of etcd, of administrators, controllers and kubelets have all expired, one create repairs
//! them, and no pod of the cluster restarts.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};

use crate::checks;
use crate::context::Context;
use crate::host_state::expect_none;
use crate::site::Site;

pub(super) const SIGN: &str = include_str!("sign.sh");

/// A validity of a year that ended two days ago.
const EXPIRED: &str = "'-367 days' '-2 days'";

/// Runs on the control plane. Its kubelet restarts with the expired certificates; running pods continue.
const EXPIRE: &str = "
for name in apiserver apiserver-kubelet-client; do
    sign $pki/$name.crt $pki/$name.key $pki/ca.crt $pki/ca.key $period
done
sign $pki/front-proxy-client.crt $pki/front-proxy-client.key $pki/front-proxy-ca.crt $pki/front-proxy-ca.key $period
for name in admin super-admin controller-manager scheduler; do sign_kubeconfig /etc/kubernetes/$name.conf $period; done
for name in member-node1 apiserver-etcd-client; do
    sign $etcd/$name.pem $etcd/$name-key.pem $etcd/ca.pem $etcd/ca-key.pem $period
done
cp $kubelet/kubelet-client-current.pem /tmp/client.crt
sign /tmp/client.crt $kubelet/kubelet-client-current.pem $pki/ca.crt $pki/ca.key $period
sed -n '/PRIVATE KEY/,/PRIVATE KEY/p' $kubelet/kubelet-client-current.pem >>/tmp/client.crt
cat /tmp/client.crt >$kubelet/kubelet-client-current.pem
rm /tmp/client.crt
sign $kubelet/kubelet.crt $kubelet/kubelet.key $pki/ca.crt $pki/ca.key $period
systemctl restart kubelet
";

/// Makes the worker's certificate expire. Runs on the control plane, where the CA is.
const EXPIRE_CLIENT: &str = "
umask 077
cat >/tmp/client.pem
cp /tmp/client.pem /tmp/client.crt
sign /tmp/client.crt /tmp/client.pem $pki/ca.crt $pki/ca.key $period
cat /tmp/client.crt
sed -n '/PRIVATE KEY/,/PRIVATE KEY/p' /tmp/client.pem
rm /tmp/client.pem /tmp/client.crt
";

/// Fails with the name of a certificate that is not valid for another 300 days.
pub(super) const VALID: &str = "
check() { openssl x509 -noout -checkend 25920000 >/dev/null || { echo \"$1 is not valid\" >&2; exit 1; }; }
for file in /etc/kubernetes/pki/*.crt /etc/ssl/etcd/ssl/*.pem /var/lib/kubelet/pki/kubelet-client-current.pem /var/lib/kubelet/pki/kubelet.crt; do
    case $file in *-key.pem) continue ;; esac
    [ ! -e $file ] || check $file <$file
done
for file in /etc/kubernetes/*.conf /root/.kube/config; do
    ! grep -qs client-certificate-data $file || sed -n 's/^ *client-certificate-data: *//p' $file | base64 -d | check $file
done
";

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let site = Site::fresh(ctx, &ctx.dir.join("site"), 2, None)?;
    ctx.kk_ok(&site, "create", &[])?;
    one_ends_before_long(ctx, &site).context("a certificate with 59 days left")?;
    all_have_expired(ctx, &site).context("certificates that have expired")
}

fn one_ends_before_long(ctx: &Context<'_>, site: &Site) -> Result<()> {
    let sign =
        "sign $pki/apiserver.crt $pki/apiserver.key $pki/ca.crt $pki/ca.key '-300 days' '+59 days +12 hours'";
    ctx.host(site.control_plane(), &format!("{SIGN}\n{sign}"))?;
    let run = ctx.kk_ok(site, "create", &[])?;
    let changes: Vec<String> = run.events.changes().iter().map(ToString::to_string).collect();
    expect_none(ctx, "it is not renewed yet", &changes)?;
    let warnings = run.events.found("warning");
    let says = |line: &String| line.contains("apiserver expires on") && line.contains("in 59 days");
    ensure!(warnings.iter().any(says), "kk did not warn of it: {warnings:?}");
    Ok(())
}

fn all_have_expired(ctx: &Context<'_>, site: &Site) -> Result<()> {
    let (control_plane, worker) = (site.control_plane(), site.hosts[1].as_str());
    let before = pods(ctx, site)?;
    let current = "/var/lib/kubelet/pki/kubelet-client-current.pem";
    let client = ctx.host(worker, &format!("cat {current}"))?;
    let script = format!("{SIGN}\n{}", EXPIRE_CLIENT.replace("$period", EXPIRED));
    let expired = ctx.run("sign", ctx.on_host(control_plane, &script).stdin(&client))?.ok()?;
    let put = format!("cat >{current}; systemctl restart kubelet");
    ctx.run("put", ctx.on_host(worker, &put).stdin(&expired))?.ok()?;
    ctx.host(control_plane, &format!("{SIGN}\n{}", EXPIRE.replace("$period", EXPIRED)))?;

    let run = ctx.kk_ok(site, "create", &[])?;

    let adapted = run.events.found("adapted");
    for name in ["apiserver has expired", "admin.conf has expired", "kubelet.conf has no valid certificate"] {
        ensure!(adapted.iter().any(|line| line.contains(name)), "kk did not say `{name}`: {adapted:?}");
    }
    for host in &site.hosts {
        ctx.host(host, VALID)?;
    }
    checks::cluster_is_complete(ctx, site).context("kk said that the cluster is ready before it was")?;
    let after = pods(ctx, site)?;
    ensure!(before == after, "pods restarted: {before:?} -> {after:?}");
    let again = ctx.kk_ok(site, "create", &[])?;
    let changes: Vec<String> = again.events.changes().iter().map(ToString::to_string).collect();
    expect_none(ctx, "create still has something to do", &changes)
}

/// Restarts of all pods except control plane pods, which read new certificates at their start.
pub(super) fn pods(ctx: &Context<'_>, site: &Site) -> Result<BTreeMap<String, u64>> {
    let mut restarts = checks::restarts(ctx, site)?;
    let of_control_plane = ["kube-apiserver-", "kube-controller-manager-", "kube-scheduler-"];
    restarts.retain(|pod, _| !of_control_plane.iter().any(|name| pod.starts_with(name)));
    Ok(restarts)
}
