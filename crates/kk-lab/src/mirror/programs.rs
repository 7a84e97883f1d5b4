//! Programs built from Go modules, once for each content of go.mod, go.sum and recipe.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::mirror::debian;
use crate::mirror::versions::{Build, Versions, arch};
use crate::sys::files::{finish, remove_if_there};
use crate::sys::packages::Need;
use crate::sys::paths::Paths;
use crate::sys::run::{bound, command, output};
use crate::sys::say::{self, Step};
use crate::sys::{disk, hash, packages};

/// How often a process that waits for another one's build probes again.
const POLL: Duration = Duration::from_millis(500);

/// From this version on Go itself fetches the version that a module requires.
const FETCHES_ITSELF: (u32, u32) = (1, 21);

/// Finished programs of one component.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    pub(crate) directory: PathBuf,
    /// Changes with every input of the programs.
    pub(crate) key: String,
}

impl Programs {
    /// Path of one program. Errors: the component has none of that name.
    pub(crate) fn path(&self, program: &str) -> Result<PathBuf> {
        let path = self.directory.join(program);
        if !path.exists() {
            bail!("{} is missing\nhint: remove {} and build again", path.display(), self.directory.display());
        }
        Ok(path)
    }
}

/// All programs by component and version; builds what the cache has not. The caller holds the lock `build`.
pub(crate) fn ensure(
    paths: &Paths,
    versions: &Versions,
    builds: &[Build],
) -> Result<BTreeMap<(String, String), Programs>> {
    if !missing(paths, builds)?.is_empty() {
        disk::ensure_free(&paths.cache, disk::for_build() + disk::for_cache(), "building the mirror")?;
        packages::install(packages::BUILD)?;
        packages::install(packages::GO)?;
        build_missing(paths, versions, builds)?;
    }
    let mut finished = BTreeMap::new();
    for build in builds {
        finished.insert((build.component.clone(), build.version.clone()), location(paths, build)?);
    }
    finished.insert(("pause".into(), versions.pause.clone()), pause(paths, &versions.pause)?);
    Ok(finished)
}

/// Component and directory of these components; builds those that the cache has not, and no more. Needs no root: nothing
/// is installed or published. Errors: an unknown component, a tool that building needs is missing, a failed build.
pub(crate) fn ensure_only(
    paths: &Paths,
    versions: &Versions,
    kubernetes: &[String],
    components: &[String],
) -> Result<Vec<(String, PathBuf)>> {
    let all = versions.builds(&paths.data, kubernetes, components)?;
    let wanted = Versions::only(&all, components);
    if let Some(Build { component, .. }) = wanted.iter().find(|build| !build.packages.is_empty()) {
        bail!(
            "{component} is made of Debian packages, which needs root\nhint: kk-lab mirror build --with {component}"
        );
    }
    // Another process that builds the whole mirror builds these, too.
    let mut alone = None;
    while alone.is_none() && !missing(paths, &wanted)?.is_empty() {
        alone = paths.try_lock("build")?;
        if alone.is_none() {
            sleep(POLL);
        }
    }
    let to_build = missing(paths, &wanted)?;
    if !to_build.is_empty() {
        disk::ensure_free(&paths.cache, disk::for_build(), "building programs")?;
        let c: &[Need] = if to_build.iter().any(|build| build.cgo) { packages::BUILD } else { &[] };
        packages::require(&[packages::GO, c].concat())?;
        build_missing(paths, versions, &wanted)?;
        clear_go_caches(paths, &all)?;
    }
    wanted.iter().map(|build| Ok((build.component.clone(), location(paths, build)?.directory))).collect()
}

fn missing<'a>(paths: &Paths, builds: &'a [Build]) -> Result<Vec<&'a Build>> {
    let mut missing = Vec::new();
    for build in builds {
        if !location(paths, build)?.directory.exists() {
            missing.push(build);
        }
    }
    Ok(missing)
}

fn build_missing(paths: &Paths, versions: &Versions, builds: &[Build]) -> Result<()> {
    let missing = missing(paths, builds)?;
    if missing.is_empty() {
        return Ok(());
    }
    let go = go_program(paths, &versions.go)?;
    for (number, build) in missing.iter().enumerate() {
        let left: u64 = missing[number..].iter().map(|build| build.seconds).sum();
        let title =
            format!("[{} of {}] building {} {}", number + 1, missing.len(), build.component, build.version);
        let step = Step::begin(&title, &format!("about {} min left in all", left.div_ceil(60)));
        compile(paths, &go, build, &location(paths, build)?.directory)
            .with_context(|| format!("cannot build {} {}", build.component, build.version))?;
        step.done();
    }
    Ok(())
}

/// Removes Go's own caches once `all` is built; before that, they save minutes for the remaining builds. The removal takes
/// minutes, too, so the caches are moved aside first: Go must not take the remains of an interrupted removal for a complete
/// cache. The caller holds the lock `build`.
pub(crate) fn clear_go_caches(paths: &Paths, all: &[Build]) -> Result<()> {
    let (caches, aside) = (go_caches(paths), paths.unfinished().join("go-caches"));
    if aside.exists() {
        say::progress("clearing what is left of Go's caches");
        remove_if_there(&aside)?;
    }
    if !caches.exists() {
        return Ok(());
    }
    if !missing(paths, all)?.is_empty() {
        say::progress(&format!("Go's caches stay until the whole mirror is built: {}", caches.display()));
        return Ok(());
    }
    say::progress("clearing Go's caches");
    fs::create_dir_all(paths.unfinished())?;
    fs::rename(&caches, &aside).with_context(|| format!("cannot move {}", caches.display()))?;
    remove_if_there(&aside)
}

pub(super) fn go_caches(paths: &Paths) -> PathBuf {
    paths.cache.join("go")
}

/// Changes with every input of the mirror: Go modules, recipes, `versions.yaml`, `pause.c`.
pub(crate) fn key_of_all(paths: &Paths, builds: &[Build]) -> Result<String> {
    let mut sha = Sha256::new();
    for file in ["versions.yaml", "pause.c"] {
        let path = paths.data.join(file);
        sha.update(fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?);
    }
    for build in builds {
        sha.update(location(paths, build)?.key);
    }
    Ok(hash::short(sha.finalize()))
}

fn location(paths: &Paths, build: &Build) -> Result<Programs> {
    let mut sha = Sha256::new();
    let module: &[&str] = if build.packages.is_empty() { &["go.mod", "go.sum"] } else { &[] };
    for file in module {
        let path = build.module.join(file);
        sha.update(fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?);
    }
    // Only added if there are any, so that the keys of other components do not change.
    for name in &build.packages {
        sha.update(format!("package={name} "));
    }
    if build.release != build.version {
        sha.update(format!("release={} ", build.release));
    }
    for (name, files) in &build.module_files {
        sha.update(format!("files={name} {files:?} "));
    }
    sha.update(format!("cgo={} tags={} ldflags={} arch={}", build.cgo, build.tags, build.ldflags, arch()));
    let key = hash::short(sha.finalize());
    let directory = paths.programs().join(format!("{}-{}-{key}", build.component, build.version));
    Ok(Programs { directory, key })
}

fn compile(paths: &Paths, go: &Path, build: &Build, directory: &Path) -> Result<()> {
    let unfinished = paths.unfinished().join(&build.component);
    remove_if_there(&unfinished)?;
    fs::create_dir_all(&unfinished)?;
    if build.packages.is_empty() {
        compile_module(paths, go, build, &unfinished)?;
        take_module_files(paths, go, build, &unfinished)?;
    } else {
        debian::unpack(build, &unfinished)?;
    }
    finish(&unfinished, directory)
}

fn compile_module(paths: &Paths, go: &Path, build: &Build, directory: &Path) -> Result<()> {
    let mut command = go_command(paths, go);
    command.current_dir(&build.module).env("CGO_ENABLED", if build.cgo { "1" } else { "0" });
    command.args(["build", "-trimpath", "-ldflags", &build.ldflags]);
    if !build.tags.is_empty() {
        command.args(["-tags", &build.tags]);
    }
    // The slash makes the target a directory: `tool` names several programs.
    command.arg("-o").arg(format!("{}/", directory.display())).arg("tool");
    output(&mut command)?;
    Ok(())
}

/// Copies files that the modules contain in addition to the programs' sources. They are kept with the programs, because Go's
/// caches are removed.
fn take_module_files(paths: &Paths, go: &Path, build: &Build, directory: &Path) -> Result<()> {
    for (name, wanted) in &build.module_files {
        let mut ask = go_command(paths, go);
        ask.current_dir(&build.module).args(["mod", "download", "-json", &wanted.module]);
        let from = directory_of_module(&output(&mut ask)?)?.join(&wanted.directory);
        let to = directory.join(name);
        fs::create_dir_all(&to)?;
        for entry in fs::read_dir(&from).with_context(|| format!("cannot list {}", from.display()))? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                fs::copy(entry.path(), to.join(entry.file_name()))?;
            }
        }
    }
    Ok(())
}

/// The directory of a module, from the output of `go mod download -json`.
fn directory_of_module(answer: &str) -> Result<PathBuf> {
    let answer: serde_json::Value =
        serde_json::from_str(answer).context("`go mod download` answers no JSON")?;
    Ok(PathBuf::from(answer["Dir"].as_str().context("`go mod download` names no directory")?))
}

/// Go with caches of the lab's own, which grow to many gigabytes and are removed when everything is built.
fn go_command(paths: &Paths, go: &Path) -> Command {
    let mut command = bound(go);
    command
        .env("GOCACHE", go_caches(paths).join("build"))
        .env("GOMODCACHE", go_caches(paths).join("mod"))
        .env("GOFLAGS", "-modcacherw -buildvcs=false")
        .env("GOWORK", "off")
        .env("GOTOOLCHAIN", "auto");
    command
}

/// A Go that is new enough or fetches the right version itself. Debian 12's Go does neither: the error explains what to do.
fn go_program(paths: &Paths, wanted: &str) -> Result<PathBuf> {
    let go = PathBuf::from("go");
    let said = output(&mut command("go", ["version"]))?;
    if parse_version(&said).with_context(|| format!("`go version` says `{}`", said.trim()))? >= FETCHES_ITSELF
    {
        return Ok(go);
    }
    let step = Step::begin(&format!("fetching Go {wanted} through the module proxy"), "");
    fs::create_dir_all(paths.unfinished())?;
    let module = format!("golang.org/toolchain@v0.0.1-go{wanted}.linux-{}", arch());
    let mut fetch = go_command(paths, &go);
    let answer = output(fetch.current_dir(paths.unfinished()).args(["mod", "download", "-json", &module]))?;
    let directory = directory_of_module(&answer)?;
    // A module's files carry no permission to be run.
    for programs in [directory.join("bin"), directory.join(format!("pkg/tool/linux_{}", arch()))] {
        for entry in fs::read_dir(&programs)? {
            fs::set_permissions(entry?.path(), fs::Permissions::from_mode(0o755))?;
        }
    }
    step.done();
    Ok(directory.join("bin/go"))
}

/// `go version go1.26.8 linux/amd64` → (1, 26).
fn parse_version(said: &str) -> Option<(u32, u32)> {
    let version = said.split_whitespace().nth(2)?.strip_prefix("go")?;
    let mut numbers = version.split(['.', 'r', 'b', '-']).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Where the programs of `builds`, and `pause`, are or will be.
pub(crate) fn directories(paths: &Paths, versions: &Versions, builds: &[Build]) -> Result<Vec<PathBuf>> {
    let mut directories = vec![pause_location(paths, &versions.pause)?.directory];
    for build in builds {
        directories.push(location(paths, build)?.directory);
    }
    Ok(directories)
}

fn pause_source(paths: &Paths) -> PathBuf {
    paths.data.join("pause.c")
}

fn pause_location(paths: &Paths, version: &str) -> Result<Programs> {
    let source = pause_source(paths);
    let mut sha = Sha256::new();
    sha.update(fs::read(&source).with_context(|| format!("cannot read {}", source.display()))?);
    sha.update(version);
    let key = hash::short(sha.finalize());
    Ok(Programs { directory: paths.programs().join(format!("pause-{version}-{key}")), key })
}

fn pause(paths: &Paths, version: &str) -> Result<Programs> {
    let made = pause_location(paths, version)?;
    if !made.directory.exists() {
        packages::install(packages::BUILD)?;
        let unfinished = paths.unfinished().join("pause");
        remove_if_there(&unfinished)?;
        fs::create_dir_all(&unfinished)?;
        let mut compiler = command("gcc", ["-Os", "-static", "-s", "-Wall"]);
        compiler.arg(format!("-DVERSION=\"{version}\"")).arg("-o").arg(unfinished.join("pause"));
        output(compiler.arg(pause_source(paths)))?;
        finish(&unfinished, &made.directory)?;
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_versions_are_understood() {
        for (said, version) in [
            ("go version go1.26.8 linux/amd64", Some((1, 26))),
            ("go version go1.19 linux/arm64", Some((1, 19))),
            ("go version go1.27rc1 linux/amd64", Some((1, 27))),
            ("go version devel +abc linux/amd64", None),
            ("", None),
        ] {
            assert_eq!(parse_version(said), version, "{said}");
        }
    }

    #[test]
    fn a_module_lies_where_go_says() {
        let said = r#"{"Path": "example.com/a", "Dir": "/cache/mod/example.com/a@v1.0.0"}"#;
        assert_eq!(directory_of_module(said).unwrap(), Path::new("/cache/mod/example.com/a@v1.0.0"));
        let error = directory_of_module(r#"{"Path": "example.com/a"}"#).unwrap_err().to_string();
        assert!(error.contains("names no directory"), "{error}");
    }

    #[test]
    fn other_packages_and_other_files_of_a_module_are_another_build() {
        let directory = tempfile::tempdir().unwrap();
        let (paths, versions, _) = lab(directory.path());
        let names = ["prometheus-operator".to_owned(), "servers".to_owned()];
        let all = versions.builds(&paths.data, &[], &names).unwrap();
        for build in Versions::only(&all, &names) {
            let mut other = build.clone();
            other.packages.extend((!build.packages.is_empty()).then(|| "nginx-light".to_owned()));
            other.module_files.values_mut().for_each(|files| files.directory.push_str("/v2"));
            let [key, key_of_other] = [&build, &other].map(|build| location(&paths, build).unwrap().key);
            assert_ne!(key, key_of_other, "{}", build.component);
        }
    }

    /// A cache in a directory of its own, and everything that is built for it.
    fn lab(directory: &Path) -> (Paths, Versions, Vec<Build>) {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/lab");
        let paths = Paths { cache: directory.to_owned(), data };
        let versions = Versions::load(&paths.data).unwrap();
        let all = versions.builds(&paths.data, &versions.chosen(&[]).unwrap(), &[]).unwrap();
        (paths, versions, all)
    }

    #[test]
    fn go_caches_stay_until_everything_is_built() {
        let directory = tempfile::tempdir().unwrap();
        let (paths, _, all) = lab(directory.path());
        fs::create_dir_all(go_caches(&paths).join("build")).unwrap();
        for build in &all {
            clear_go_caches(&paths, &all).unwrap();
            assert!(go_caches(&paths).exists(), "gone before {}", build.component);
            fs::create_dir_all(location(&paths, build).unwrap().directory).unwrap();
        }
        // Leftovers of an interrupted removal are removed, too.
        let left = paths.unfinished().join("go-caches");
        fs::create_dir_all(left.join("mod")).unwrap();
        clear_go_caches(&paths, &all).unwrap();
        assert!(!go_caches(&paths).exists() && !left.exists());
    }

    #[test]
    fn components_that_are_there_are_found_beside_a_build_that_runs() {
        let directory = tempfile::tempdir().unwrap();
        let (paths, versions, all) = lab(directory.path());
        let wanted = ["kubernetes".to_owned(), "etcd".to_owned()];
        let mut there = Vec::new();
        for build in Versions::only(&all, &wanted) {
            let made = location(&paths, &build).unwrap().directory;
            fs::create_dir_all(&made).unwrap();
            there.push((build.component, made));
        }
        // Waiting for this lock would not end.
        let _other = paths.lock("build").unwrap();
        let found = ensure_only(&paths, &versions, &versions.chosen(&[]).unwrap(), &wanted).unwrap();
        assert_eq!(found, there);
    }

    #[test]
    fn components_that_another_process_builds_are_awaited_and_not_its_whole_build() {
        let directory = tempfile::tempdir().unwrap();
        let (paths, versions, all) = lab(directory.path());
        let wanted = ["etcd".to_owned()];
        let made = location(&paths, &Versions::only(&all, &wanted)[0]).unwrap().directory;
        let _other = paths.lock("build").unwrap();
        let building = std::thread::spawn({
            let made = made.clone();
            move || {
                sleep(POLL);
                fs::create_dir_all(made).unwrap();
            }
        });
        let found = ensure_only(&paths, &versions, &versions.chosen(&[]).unwrap(), &wanted).unwrap();
        assert_eq!(found, [("etcd".to_owned(), made)]);
        building.join().unwrap();
    }
}
