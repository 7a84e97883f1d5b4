//! A user who is not root and needs a password for sudo.

use anyhow::Result;

use crate::checks;
use crate::context::Context;
use crate::host_state;
use crate::lab::SudoUser;
use crate::site::Site;

/// The quote and the spaces would break a password that passes through shell text.
const USER: SudoUser = SudoUser { name: "ada", password: "it's $HOME \"a\" secret" };

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let site = Site::fresh(ctx, &ctx.dir.join("site"), 2, Some(USER))?;
    for host in &site.hosts {
        // A hardened host: a banner before the log-in, a lecture by sudo, and a required terminal. sudo records permanently which
        // users it has lectured, so the lecture takes place before kk connects.
        let harden = ctx.on_host(
            host,
            "echo 'Authorized use only' >/etc/issue.net; echo 'Banner /etc/issue.net' >/etc/ssh/sshd_config.d/banner.conf
             echo 'Defaults lecture=always' >/etc/sudoers.d/hardened; chmod 440 /etc/sudoers.d/hardened
             su ada -c 'sudo -S true'
             echo 'Defaults requiretty' >>/etc/sudoers.d/hardened
             echo 'echo noise from a login script' >>/home/ada/.bashrc
             systemctl restart ssh",
        );
        ctx.run("harden", harden.stdin(format!("{}\n", USER.password)))?.ok()?;
    }
    let before = host_state::of_all(ctx, &site.hosts)?;
    ctx.kk_ok(&site, "create", &[])?;
    checks::cluster_is_complete(ctx, &site)?;
    checks::create_changes_nothing(ctx, &site)?;
    ctx.kk_ok(&site, "delete", &["--all"])?;
    host_state::expect_restored(ctx, &before)
}
