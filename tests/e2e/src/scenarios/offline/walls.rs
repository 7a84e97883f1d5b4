//! Rules of the lab's network that block the mirror, the registry and everything outside the lab, and count the attempts to reach
//! them.

use anyhow::{Context as _, Result, ensure};

use crate::context::Context;
use crate::report;
use crate::site::Site;

/// The mirror and the registry, on the control machine's address in the lab.
const SERVERS: &str = "-d 172.30.0.1 -p tcp -m multiport --dports 5000,8080";
/// Anything that is not the lab.
const ELSEWHERE: &str = "! -d 172.30.0.0/24 ! -o lo";

/// They stand until this is dropped.
pub(super) struct Walls<'a> {
    ctx: &'a Context<'a>,
    root: String,
    /// The rules that were added, by chain.
    rules: Vec<(&'static str, &'static str)>,
}

impl<'a> Walls<'a> {
    /// The control machine has no program for such rules; a host's is used, in the lab's network.
    pub(super) fn up(ctx: &'a Context<'a>, site: &Site) -> Result<Self> {
        let root = ctx.tools.lab.state(&format!("hosts/{}/root", site.control_plane())).display().to_string();
        let mut walls = Self { ctx, root, rules: Vec::new() };
        for (chain, what) in [("INPUT", SERVERS), ("OUTPUT", ELSEWHERE), ("FORWARD", ELSEWHERE)] {
            walls.rule(&format!("-I {chain} {what} -j REJECT"))?;
            walls.rules.push((chain, what));
        }
        // The rules work, and count: this one is seen.
        let probe = ctx.enter(&["bash", "-c", "exec 3<>/dev/tcp/172.30.0.1/5000"]);
        ensure!(ctx.run("probe", probe)?.code != Some(0), "the registry can still be reached");
        ensure!(walls.count()? > 0, "the rules do not count");
        for chain in ["INPUT", "OUTPUT", "FORWARD"] {
            walls.rule(&format!("-Z {chain}"))?;
        }
        ensure!(walls.count()? == 0, "the counters cannot be set back");
        Ok(walls)
    }

    fn rule(&self, words: &str) -> Result<String> {
        let script = format!("exec chroot {} /usr/sbin/iptables -w 10 {words}", self.root);
        self.ctx.run("iptables", self.ctx.enter(&["sh", "-c", &script]))?.ok()
    }

    /// Packets that met one of the rules.
    fn count(&self) -> Result<u64> {
        let list = self.rule("-nvxL")?;
        let met = list.lines().filter(|line| line.contains("REJECT"));
        met.map(|line| {
            let packets = line.split_whitespace().next().unwrap_or_default();
            packets.parse::<u64>().with_context(|| format!("this is no counter: {line}"))
        })
        .sum()
    }

    pub(super) fn nobody_tried(&self) -> Result<()> {
        let tried = self.count()?;
        ensure!(tried == 0, "{tried} packets went elsewhere than to the hosts:\n{}", self.rule("-nvxL")?);
        Ok(())
    }
}

impl Drop for Walls<'_> {
    /// Also after a failure: the scenarios that follow need mirror and registry.
    fn drop(&mut self) {
        for (chain, what) in &self.rules {
            if let Err(error) = self.rule(&format!("-D {chain} {what} -j REJECT")) {
                report::line(&format!("a rule of the lab's network could not be removed: {error:#}"));
            }
        }
    }
}
