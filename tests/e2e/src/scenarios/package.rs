//! The packages of kk (`make package`) on fresh hosts of several Debian releases. On each host, kk from the `.deb` creates a cluster
//! of that host, and kk from the `.tar.gz` finds it healthy. `PACKAGES` is their directory; without it nothing runs.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::cases::{self, Case};
use crate::checks;
use crate::context::Context;
use crate::process::Job;
use crate::site::Site;
use crate::suite::given;

/// For a create on the host itself, which also downloads what it installs.
const LIMIT: Duration = Duration::from_mins(5);

struct Release(&'static str);

impl Case for Release {
    fn name(&self) -> &'static str {
        self.0
    }
}

const RELEASES: [Release; 3] = [Release("bullseye"), Release("bookworm"), Release("trixie")];

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let packages = given("PACKAGES", "the directory of the packages: make package")?;
    cases::each(ctx, &RELEASES, |release| one(ctx, &packages, release))
}

fn one(ctx: &Context<'_>, packages: &Path, release: &Release) -> Result<()> {
    let site = Site::booted(ctx, &ctx.dir.join(release.0), 1, None, &["--suite", release.0])?;
    let host = site.control_plane();
    copy(ctx, &site, packages)?;
    let script = format!("cd {}\nfile={}\n{SCRIPT}", packages.display(), site.file.display());
    let said = ctx.run("create", ctx.on_host(host, &script).limit(LIMIT))?.ok()?;
    ensure!(said.contains("is ready"), "it does not say that the cluster is ready:\n{said}");
    checks::nodes_are_ready(ctx, &site)?;
    let delete = format!("cd /root; kk delete cluster -f {} --all -y; dpkg --purge kk", site.file.display());
    ctx.run("delete", ctx.on_host(host, &delete).limit(LIMIT))?.ok()?;
    Ok(())
}

/// Runs in the directory of the packages. `file` is the Cluster file.
const SCRIPT: &str = "
sha256sum --check --strict SHA256SUMS
dpkg --install kk_*_amd64.deb
test -s /usr/share/man/man1/kk-create-cluster.1.gz
bash -euc '. /usr/share/bash-completion/completions/kk; complete -p kk'
mkdir /root/archive
tar -C /root/archive --strip-components 1 -xzf kk-*-linux-amd64.tar.gz
cd /root
kk create cluster -f \"$file\" -y 2>&1
archive/kk status -f \"$file\"
";

/// Files on the control machine that the Cluster file names.
fn files(site: &Site) -> Result<Vec<String>> {
    let file = site.read()?;
    let spec = &file["spec"];
    let auths = spec["registry"]["auths"].as_object();
    let certificates = auths.into_iter().flat_map(|auths| auths.values()).map(|auth| &auth["certsPath"]);
    let others = [&spec["download"]["catalogue"], &spec["hosts"][0]["privateKeyPath"]];
    Ok(certificates.chain(others).filter_map(Value::as_str).map(str::to_owned).collect())
}

/// Copies the packages, the Cluster file and the files that it names to the same paths on the host.
fn copy(ctx: &Context<'_>, site: &Site, packages: &Path) -> Result<()> {
    let archive = site.dir.join("files.tar");
    let pack = Job::new("tar")
        .args(["--create", "--absolute-names", "--dereference", "--file"])
        .args([&archive, packages, &site.file])
        .args(files(site)?);
    ctx.run("pack", pack)?.ok()?;
    let unpack = "tar --extract --absolute-names";
    ctx.run("unpack", ctx.on_host(site.control_plane(), unpack).stdin_file(&archive))?.ok()?;
    Ok(())
}
