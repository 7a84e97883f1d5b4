//! [`Apt`]: runs this machine's `apt-get` for another distribution. Directory, sources and the list of installed packages are
//! separate, so this machine is not changed, and its installed packages have no influence.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use kk_config::OperatingSystem;
use tokio::process::Command;

use super::program::{failed, last_line, run};
use crate::{Error, Sha256Sum};

/// The hint for a machine without apt.
const MISSING: &str = "packages of Debian and its relatives are collected by apt: make the bundle on a machine with apt and dpkg, \
                       or remove operatingSystems from the manifest";

/// One package that apt has chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Deb {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) sum: Sha256Sum,
    pub(super) size: u64,
}

/// A directory with the lists of a distribution.
pub(super) struct Apt<'a> {
    dir: PathBuf,
    system: &'a OperatingSystem,
}

impl<'a> Apt<'a> {
    /// Prepares the directory, which must be empty, and fetches the lists. Their signatures are verified.
    pub(super) async fn new(dir: &Path, system: &'a OperatingSystem) -> Result<Self, Error> {
        let keyring = system.keyring();
        if !Path::new(&keyring).exists() {
            let hint = format!(
                "install it (Debian: {}-archive-keyring or {}-keyring), or name another as repository.keyring",
                system.id, system.id
            );
            return Err(failed(system, format!("the keys of the distribution are missing: {keyring}"), hint));
        }
        let apt = Self { dir: dir.to_owned(), system };
        let sources = apt.sources().await?;
        let settings = apt.run("apt-config", ["dump", "--format", "%F \"%v\";%n", "Acquire"], None).await?;
        apt.prepare(&sources, &keyring, &of_transfers(&settings)).map_err(Error::file("prepare", dir))?;
        apt.get(["update"]).await?;
        Ok(apt)
    }

    /// The sources of the Manifest. Without these, the sources from which this machine gets the same distribution, with the
    /// requested release.
    async fn sources(&self) -> Result<Vec<String>, Error> {
        let system = self.system;
        let Some(release) = system.code_name().filter(|_| system.sources.is_empty()) else {
            return Ok(system.sources.clone());
        };
        let words = [
            "indextargets",
            "--format",
            "$(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN)",
            "Created-By: Packages",
        ];
        let sources = of_this_machine(&self.run("apt-get", words, None).await?, &system.id, release);
        if sources.is_empty() {
            let reason = format!("apt of this machine has no lists of {}", system.id);
            let hint = "name the sources as repository.sources; on a machine with that distribution run apt-get update";
            return Err(failed(system, reason, hint));
        }
        Ok(sources)
    }

    /// Writes its files, with the transfer settings of this machine.
    fn prepare(&self, sources: &[String], keyring: &str, settings: &str) -> io::Result<()> {
        let OperatingSystem { arch, .. } = self.system;
        for directory in ["lists/partial", "cache/archives/partial", "parts", "debs"] {
            fs::create_dir_all(self.dir.join(directory))?;
        }
        let line = |source: &String| format!("deb [arch={arch} signed-by={keyring}] {source}\n");
        let sources: String = sources.iter().map(line).collect();
        fs::write(self.dir.join("sources.list"), sources)?;
        fs::write(self.dir.join("status"), "")?;
        // A path in this file ends at a quotation mark.
        let dir = self.dir.to_str().filter(|dir| !dir.contains(['"', '\\', '\n']));
        let dir = dir.ok_or_else(|| io::Error::other("apt cannot use a directory with this name"))?;
        let configuration = format!(
            "{settings}\nDir::Etc \"{dir}\";\nDir::Etc::parts \"{dir}/parts\";\nDir::Etc::sourcelist \"{dir}/sources.list\";\n\
             Dir::Etc::sourceparts \"-\";\nDir::Etc::preferencesparts \"{dir}/parts\";\n\
             Dir::Etc::netrc \"/etc/apt/auth.conf\";\nDir::Etc::netrcparts \"/etc/apt/auth.conf.d\";\n\
             Dir::State \"{dir}\";\nDir::State::lists \"{dir}/lists\";\nDir::State::status \"{dir}/status\";\n\
             Dir::Cache \"{dir}/cache\";\n\
             APT::Architecture \"{arch}\";\nAPT::Architectures {{ \"{arch}\"; }};\nAPT::Install-Recommends \"false\";\n\
             APT::Sandbox::User \"root\";\nAPT::Update::Error-Mode \"any\";\nAcquire::Languages \"none\";\n\
             Acquire::GzipIndexes \"false\";\nAcquire::Retries \"3\";\n"
        );
        fs::write(self.dir.join("apt.conf"), configuration)
    }

    /// The packages with these names and all their dependencies, as if nothing were installed.
    pub(super) async fn resolve(&self, names: impl IntoIterator<Item = &String>) -> Result<Vec<Deb>, Error> {
        let words = ["install", "--simulate"].into_iter().chain(names.into_iter().map(String::as_str));
        let chosen = chosen(&self.get(words).await?);
        let words = ["download", "--print-uris"].into_iter().map(str::to_owned);
        let uris = self.get(words.chain(chosen.iter().map(exactly))).await?;
        let debs: Vec<Deb> = uris.lines().filter_map(parse_uri).collect();
        let has = |(name, version): &(String, String)| {
            debs.iter().any(|deb| deb.name == *name && deb.version == *version)
        };
        if let Some((name, version)) = chosen.iter().find(|one| !has(one)) {
            let reason = format!("apt does not say the SHA-256 of {name} {version}");
            return Err(failed(self.system, reason, "check repository.sources"));
        }
        Ok(debs)
    }

    /// Fetches packages; returns the file of each. apt has compared them with the lists.
    pub(super) async fn download(&self, debs: &[Deb]) -> Result<Vec<PathBuf>, Error> {
        let directory = self.dir.join("debs");
        let words: Vec<String> =
            debs.iter().map(|deb| exactly(&(deb.name.clone(), deb.version.clone()))).collect();
        let words = std::iter::once("download".to_owned()).chain(words);
        self.run("apt-get", quiet(words), Some(&directory)).await?;
        let entries = fs::read_dir(&directory).map_err(Error::file("read", &directory))?;
        Ok(entries.flatten().map(|entry| entry.path()).collect())
    }

    /// The control fields of a package.
    pub(super) async fn fields(&self, deb: &Path) -> Result<String, Error> {
        self.run("dpkg-deb", [OsStr::new("--field"), deb.as_os_str()], None).await
    }

    async fn get<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Result<String, Error> {
        self.run("apt-get", quiet(words), None).await
    }

    async fn run<S: AsRef<OsStr>>(
        &self,
        program: &str,
        words: impl IntoIterator<Item = S>,
        directory: Option<&Path>,
    ) -> Result<String, Error> {
        let mut command = Command::new(program);
        command.args(words);
        let own = self.dir.join("apt.conf");
        if own.exists() {
            command.env("APT_CONFIG", own);
        }
        if let Some(directory) = directory {
            command.current_dir(directory);
        }
        run(command, self.system, MISSING, |said| (reason(said), hint(said).to_owned())).await
    }
}

fn quiet<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Vec<std::ffi::OsString> {
    let words = words.into_iter().map(|word| word.as_ref().to_owned());
    ["-q", "-y"].map(Into::into).into_iter().chain(words).collect()
}

/// Sources for a release of a distribution, derived from the lists that a machine has of it: `URI SUITE COMPONENT ORIGIN`, one
/// per line.
fn of_this_machine(lists: &str, id: &str, release: &str) -> Vec<String> {
    let mut sources = Vec::new();
    for line in lists.lines() {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        let [uri, suite, component, origin] = words[..] else { continue };
        let part = suite.find('-').map_or("", |dash| &suite[dash..]);
        let source = format!("{uri} {release}{part} {component}");
        if origin.eq_ignore_ascii_case(id)
            && ["", "-updates", "-security"].contains(&part)
            && !sources.contains(&source)
        {
            sources.push(source);
        }
    }
    sources
}

/// The settings for proxies and certificates. Other settings of this machine concern its own packages, such as additional lists
/// to fetch.
fn of_transfers(settings: &str) -> String {
    let lines = settings.lines().filter(|line| line.starts_with("Acquire::http"));
    lines.flat_map(|line| [line, "\n"]).collect()
}

fn exactly((name, version): &(String, String)) -> String {
    format!("{name}={version}")
}

/// Name and version of the packages that a simulation would install: `Inst socat (1.7.4.4-2 Debian:12.12/oldstable [amd64])`.
fn chosen(simulation: &str) -> Vec<(String, String)> {
    let line = |line: &str| {
        let (name, rest) = line.strip_prefix("Inst ")?.split_once(' ')?;
        let version = rest.split_once('(')?.1.split_whitespace().next()?;
        Some((name.to_owned(), version.trim_end_matches(')').to_owned()))
    };
    simulation.lines().filter_map(line).collect()
}

/// Parses `'URI' FILE SIZE SHA256:DIGITS`, in apt's own order; FILE is `NAME_VERSION_ARCH.deb` with `%3a` for a colon.
fn parse_uri(line: &str) -> Option<Deb> {
    let mut words = line.strip_prefix('\'')?.split_whitespace().skip(1);
    let mut parts = words.next()?.split('_');
    let (name, version) = (parts.next()?.to_owned(), parts.next()?.replace("%3a", ":"));
    let size = words.next()?.parse().ok()?;
    let sum = words.next()?.strip_prefix("SHA256:")?.parse().ok()?;
    Some(Deb { name, version, sum, size })
}

/// apt's error messages, in one line.
fn reason(said: &str) -> String {
    let errors: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("E: ")).collect();
    if errors.is_empty() { last_line(said).to_owned() } else { errors.join("; ") }
}

fn hint(said: &str) -> &'static str {
    if said.contains("NO_PUBKEY") || said.contains("is not signed") || said.contains("EXPKEYSIG") {
        "set repository.keyring to the keys that sign these lists"
    } else if said.contains("does not have a Release file") {
        "check repository.sources: a source without signed lists is not used"
    } else if said.contains("Unable to locate package") || said.contains("has no installation candidate") {
        "add the sources that have it to repository.sources"
    } else {
        "check the network, the proxies of apt and repository.sources; downloaded data is kept"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_those_of_this_machine_for_the_other_release() {
        let lists = "http://m.example/debian/ bookworm main Debian\nhttp://m.example/debian/ bookworm-updates main Debian\n\
            http://m.example/debian/ bookworm main Debian\nhttp://m.example/security/ bookworm-security main Debian\n\
            http://m.example/debian/ bookworm-backports main Debian\nhttp://t.example/ stable main Tools, Inc.\n";
        let expected = [
            "http://m.example/debian/ trixie main",
            "http://m.example/debian/ trixie-updates main",
            "http://m.example/security/ trixie-security main",
        ];
        assert_eq!(of_this_machine(lists, "debian", "trixie"), expected);
        assert_eq!(of_this_machine(lists, "ubuntu", "noble"), [""; 0]);
    }

    #[test]
    fn what_apt_prints_is_understood() {
        let simulation = "NOTE: This is only a simulation!\nInst gcc-12-base (12.2.0-14+deb12u1 Debian:12.12/oldstable [amd64])\n\
            Inst libc6 [2.36-9] (2.36-9+deb12u14 Debian:12.12 [amd64]) []\nConf libc6 (2.36-9+deb12u14 Debian [amd64])\n\
            Inst x (1)\n";
        let expected = [("gcc-12-base", "12.2.0-14+deb12u1"), ("libc6", "2.36-9+deb12u14"), ("x", "1")];
        let expected = expected.map(|(name, version)| (name.to_owned(), version.to_owned()));
        assert_eq!(chosen(simulation), expected);
        let digits = "ab".repeat(32);
        let line =
            format!("'http://a.example/pool/l/less_590.deb' less_2%3a590-2_amd64.deb 375188 SHA256:{digits}");
        let sum = digits.parse().unwrap();
        let deb = Deb { name: "less".into(), version: "2:590-2".into(), sum, size: 375_188 };
        assert_eq!(parse_uri(&line), Some(deb));
        assert_eq!(parse_uri("'http://a.example/x.deb' x_1_all.deb 7 MD5Sum:00"), None);
        let settings = "Acquire::IndexTargets::deb::DEP-11 \"\";\nAcquire::https::CAInfo \"/x\";\nAcquire::http::Proxy \"p\";\n";
        assert_eq!(of_transfers(settings), "Acquire::https::CAInfo \"/x\";\nAcquire::http::Proxy \"p\";\n");
        let said = "W: one\nE: Unable to locate package x\nE: two\n";
        assert_eq!(reason(said), "Unable to locate package x; two");
        assert!(hint(said).contains("repository.sources"));
    }
}
