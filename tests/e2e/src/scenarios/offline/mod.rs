//! A cluster from a bundle: made from the lab's mirror and registry, used where these are unreachable. Packet counters show
//! that neither kk nor a host tried to reach them.

pub(super) mod delta;
pub(super) mod kills;
pub(super) mod packages;
mod walls;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;
use serde_json::Value;

use crate::checks;
use crate::context::Context;
use crate::kk::KkRun;
use crate::lab::Lab;
use crate::process::Job;
use crate::registry;
use crate::site::Site;

use self::walls::Walls;

/// Exports and verifications on a busy machine.
const LIMIT: Duration = Duration::from_mins(6);
/// Bytes of progress after which an export is killed.
const MORE: u64 = 40_000_000;
pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let site = Site::fresh(ctx, &ctx.dir.join("site"), 3, None)?;
    let manifest = site.dir.join("manifest.yaml");
    let words = ["create", "manifest", "-f", &text(&site.file), "-o", &text(&manifest)];
    kk(ctx, &site, &words)?.ok()?;
    let smaller = site.dir.join("smaller.yaml");
    fs::copy(&manifest, &smaller)?;
    let own = add_own_images(ctx.tools.lab, &manifest)?;
    let bundle = killed_and_made(ctx, &site, &manifest)?;
    merged(ctx, &site, [&smaller, &manifest], &bundle)?;
    damaged(ctx, &site, &bundle)?;
    let key = signed(ctx, &site, &bundle)?;
    let walls = Walls::up(ctx, &site)?;
    let site = site.variant("signed", |cluster| cluster["spec"]["download"]["publicKey"] = key.into())?;
    let words = ["-a", &text(&bundle)];
    let create = || ctx.kk(&site, "create", &words);
    other_version(ctx, &site, &bundle)?;
    create()?.expect_code(0)?;
    checks::cluster_is_complete(ctx, &site)?;
    checks::service_answers_across_nodes(ctx, &site)?;
    let again = || {
        let again = create()?;
        again.expect_code(0)?;
        Ok::<Vec<String>, anyhow::Error>(again.events.changes().iter().map(ToString::to_string).collect())
    };
    let changes = again()?;
    ensure!(changes.is_empty(), "the second create changed something:\n{}", changes.join("\n"));
    own_images_are_there(ctx, &site, &own)?;
    // The name stays, and is another image now.
    let host = site.control_plane();
    ctx.host(host, &format!("ctr -n k8s.io images tag --force {} {}", own[1].name, own[0].name))?;
    let changes = again()?;
    let imports: Vec<_> = changes.iter().filter(|change| change.contains("import ")).collect();
    ensure!(
        imports.len() == 1 && imports[0].starts_with(host) && imports[0].ends_with(&own[0].name),
        "not what was changed:\n{}",
        changes.join("\n")
    );
    own_images_are_there(ctx, &site, &own)?;
    for host in &site.hosts {
        let left = ctx.host(host, "find /var/lib/kubekey -type f")?;
        ensure!(left.is_empty(), "content of images is left on {host}:\n{left}");
    }
    walls.nobody_tried()
}

/// An image that the cluster does not need: the name by which hosts know it, and one of the cluster that is the same image.
pub(super) struct Own {
    pub(super) name: String,
    same: String,
}

/// Adds two to the manifest, one by its tag and one by its digest. The lab has flannel's images under older names, too.
pub(super) fn add_own_images(lab: Lab, manifest: &Path) -> Result<[Own; 2]> {
    let mut parsed: Value = serde_saphyr::from_str(&fs::read_to_string(manifest)?)?;
    let images = parsed["spec"]["images"].as_array_mut().context("the manifest lists no images")?;
    let find = |path: &str| {
        let names = images.iter().filter_map(Value::as_str).map(str::to_owned);
        let found = names.into_iter().find(|name| name.starts_with(&format!("docker.io/flannel/{path}:")));
        found.with_context(|| format!("the manifest has no {path}"))
    };
    let (flannel, plugin) = (find("flannel")?, find("flannel-cni-plugin")?);
    let (_, tag) = plugin.rsplit_once(':').context("an image without a tag")?;
    let digest = registry::digest_of(lab, "flannel-io/flannel-cni-plugin", tag)?;
    let own = [
        Own { name: flannel.replace("flannel/flannel", "flannel-io/flannel"), same: flannel },
        Own { name: format!("docker.io/flannel-io/flannel-cni-plugin@{digest}"), same: plugin },
    ];
    images.extend(own.iter().map(|own| Value::from(own.name.as_str())));
    // JSON is YAML.
    fs::write(manifest, parsed.to_string())?;
    Ok(own)
}

/// Every node has the images as they were exported: the runtime finds the image of each name.
fn own_images_are_there(ctx: &Context<'_>, site: &Site, own: &[Own]) -> Result<()> {
    let id = |host: &str, image: &str| -> Result<String> {
        let status: Value = serde_json::from_str(&ctx.host(host, &format!("crictl inspecti -q {image}"))?)?;
        Ok(status["status"]["id"].as_str().context("the image has no ID")?.to_owned())
    };
    for host in &site.hosts {
        for Own { name, same } in own {
            ensure!(id(host, name)? == id(host, same)?, "{host}: {name} is not what was exported");
        }
    }
    Ok(())
}

/// Creates the bundle by an export that is killed three times on its way. Each attempt resumes where the previous one stopped.
fn killed_and_made(ctx: &Context<'_>, site: &Site, manifest: &Path) -> Result<PathBuf> {
    let bundle = site.dir.join("bundle.tar.zst");
    let (from, to) = (text(manifest), text(&bundle));
    let words = ["artifact", "export", "-m", &from, "-o", &to, "--workdir", "stock"];
    let mut before = 0;
    for kill in 1..=3 {
        let mut export = ctx.start("export-killed", job(ctx, site, &words))?;
        // It has fetched something more, whatever the machine's speed.
        ctx.until("the export fetches", LIMIT, || {
            Ok((export.has_ended()? || size_of(&site.dir.join("stock")) > before + MORE).then_some(()))
        })?;
        sleep(Duration::from_millis(50));
        export.signal(Signal::KILL)?;
        export.wait()?;
        let now = size_of(&site.dir.join("stock"));
        ensure!(now > before, "kill {kill}: the export had kept {before} bytes, and now {now}");
        before = now;
        ensure!(!bundle.exists(), "a killed export left a bundle");
    }
    let last = ctx.start("export", job(ctx, site, &[&words[..], &["--format", "json"]].concat()))?;
    let last = KkRun::of(last)?;
    last.expect_code(0)?;
    let fetched = last.finished.stdout.lines().filter_map(came).max().unwrap_or(0);
    let verified = kk(ctx, site, &["artifact", "inspect", "-a", &to, "--output", "json"])?.ok()?;
    let index: Value = serde_json::from_str(&verified)?;
    let sizes = index["files"].as_array().into_iter().flatten().filter_map(|file| file["size"].as_u64());
    let total: u64 = sizes.sum();
    ensure!(
        fetched + before / 2 < total,
        "after three kills the export fetched {fetched} of {total} bytes again"
    );
    Ok(bundle)
}

/// A bundle of the first manifest and the delta from it to the second one are the bundle of the second, byte by byte.
fn merged(ctx: &Context<'_>, site: &Site, manifests: [&Path; 2], bundle: &Path) -> Result<()> {
    let [base, delta, whole] =
        ["base", "delta", "merged"].map(|name| text(&site.dir.join(format!("{name}.tar.zst"))));
    let [from, to] = manifests.map(text);
    let export = |words: &[&str]| {
        let words = [&["artifact", "export", "--workdir", "stock"], words].concat();
        kk(ctx, site, &words)?.ok()
    };
    export(&["-m", &from, "-o", &base])?;
    export(&["-m", &to, "--base", &base, "-o", &delta])?;
    let [small, large] = [fs::metadata(&delta)?.len(), fs::metadata(bundle)?.len()];
    ensure!(small < large / 10, "the delta has {small} bytes, the bundle {large}");
    kk(ctx, site, &["artifact", "merge", "--base", &base, "--delta", &delta, "-o", &whole])?.ok()?;
    ctx.run("compare", Job::new("cmp").args([&text(bundle), &whole]))?.ok()?;
    let said = kk(ctx, site, &["artifact", "diff", "--base", &base, "-a", &whole])?.ok()?;
    ensure!(said.matches("flannel-io/flannel").count() == 2, "not what was added:\n{said}");
    [base, delta, whole].into_iter().try_for_each(fs::remove_file)?;
    Ok(())
}

/// Bytes that were fetched until an event.
fn came(event: &str) -> Option<u64> {
    let event: Value = serde_json::from_str(event).ok()?;
    (event["event"] == "progress" && event["task"] == "fetch").then(|| event["done"].as_u64())?
}

/// A flipped bit and a missing end are found, by the check of bundles and by a create, which changes nothing.
fn damaged(ctx: &Context<'_>, site: &Site, bundle: &Path) -> Result<()> {
    let bad = site.dir.join("bad.tar.zst");
    let whole = fs::read(bundle)?;
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    for (name, bytes) in [("flipped", &flipped[..]), ("cut", &whole[..whole.len() * 2 / 3])] {
        fs::write(&bad, bytes)?;
        let look = kk(ctx, site, &["artifact", "verify", "-a", &text(&bad)])?;
        ensure!(look.code == Some(1), "{name}: verify ended with {:?}", look.code);
        let create = ctx.kk(site, "create", &["-a", &text(&bad), "--allow-unsigned"])?;
        create.expect_code(3)?.expect_said(&["cannot use the bundle"])?;
        ensure!(create.events.changes().is_empty(), "{name}: the create changed something");
    }
    fs::remove_file(bad)?;
    Ok(())
}

/// Signs the bundle as its author would, and returns the public key. A bundle that another author signed is refused, and so is a
/// bundle without a key.
fn signed(ctx: &Context<'_>, site: &Site, bundle: &Path) -> Result<String> {
    let place = |name: &str| site.dir.join(name);
    let verify = |key: &str| {
        let words = ["artifact", "verify", "-a", &text(bundle), "--public-key", &text(&place(key))];
        kk(ctx, site, &words)
    };
    for name in ["right", "wrong"] {
        let (public, secret) = (text(&place(&format!("{name}.pub"))), text(&place(&format!("{name}.key"))));
        ctx.run("minisign", Job::new("minisign").args(["-G", "-W", "-p", &public, "-s", &secret]))?.ok()?;
    }
    ensure!(verify("right.pub")?.code == Some(1), "a bundle without a signature is taken for signed");
    let sign = ["-S", "-s", &text(&place("right.key")), "-m", &text(bundle), "-t", "for the lab"];
    ctx.run("minisign", Job::new("minisign").args(sign))?.ok()?;
    let said = verify("right.pub")?.ok()?;
    ensure!(said.contains("for the lab"), "the comment of the signature is not shown: {said}");
    ensure!(verify("wrong.pub")?.code == Some(1), "a signature by somebody else is taken for right");
    let (bundle, wrong) = (text(bundle), text(&place("wrong.pub")));
    for (words, said) in [
        (&["-a", &bundle, "--public-key", &wrong][..], "the signature of"),
        (&["-a", &bundle], "--allow-unsigned"),
    ] {
        let create = ctx.kk(site, "create", words)?;
        create.expect_code(3)?.expect_said(&[said])?;
        ensure!(create.events.changes().is_empty(), "the create changed something");
    }
    let key = fs::read_to_string(place("right.pub"))?;
    Ok(key.lines().last().context("minisign has written no key")?.to_owned())
}

/// A file that needs something else is refused, and the missing items are named.
fn other_version(ctx: &Context<'_>, site: &Site, bundle: &Path) -> Result<()> {
    let other = site.variant("other", |cluster| {
        cluster["spec"]["components"]["coredns"] = "v1.12.0".into();
    })?;
    let create = ctx.kk(&other, "create", &["-a", &text(bundle)])?;
    create.expect_code(5)?.expect_said(&["coredns:v1.12.0", "is not in the bundle"])?;
    ensure!(create.events.changes().is_empty(), "the create changed something");
    Ok(())
}

pub(super) fn text(path: &Path) -> String {
    path.display().to_string()
}

/// `kk WORDS` in the lab's network, in the site's directory.
pub(super) fn job(ctx: &Context<'_>, site: &Site, words: &[&str]) -> Job {
    let kk = ctx.enter(&["env"]).args([format!("HOME={}", site.home().display())]).args([&ctx.tools.kk]);
    kk.args(words.iter().copied()).directory(&site.dir).limit(LIMIT)
}

pub(super) fn kk(ctx: &Context<'_>, site: &Site, words: &[&str]) -> Result<crate::process::Finished> {
    ctx.run(&format!("kk-{}-{}", words[0], words[1]), job(ctx, site, words))
}

/// Bytes of all files below a directory.
fn size_of(directory: &Path) -> u64 {
    let files = crate::site::files_below(directory);
    files.iter().filter_map(|file| fs::metadata(file).ok()).map(|data| data.len()).sum()
}
