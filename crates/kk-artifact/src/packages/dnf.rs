//! [`Dnf`]: runs this machine's `dnf` for another distribution, with `rpmkeys`, `rpm` and `createrepo_c`. Configuration, cache
//! and the database of installed packages are separate, so this machine is not changed, and its installed packages have no
//! influence.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use kk_config::{Arch, OperatingSystem};
use tokio::process::Command;

use super::program::{failed, last_line, run};
use crate::Error;

/// The hint for a machine without one of these tools.
const MISSING: &str = "packages of distributions with rpm are collected by dnf with its plugin download, rpm and createrepo_c: install \
                       them (Debian: dnf, dnf-plugins-core, rpm and createrepo-c), or remove operatingSystems from the manifest";

/// The header of a package file, as rpm reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) name: String,
    /// `EPOCH:VERSION-RELEASE`, without an epoch of 0.
    pub(super) version: String,
    /// Names by which other packages may require it.
    pub(super) provides: Vec<String>,
}

/// A directory with the lists of a distribution.
pub(super) struct Dnf<'a> {
    dir: PathBuf,
    system: &'a OperatingSystem,
}

impl<'a> Dnf<'a> {
    /// Prepares the directory, which must be empty, and imports the keys of the distribution.
    pub(super) async fn new(dir: &Path, system: &'a OperatingSystem) -> Result<Self, Error> {
        let dnf = Self { dir: dir.to_owned(), system };
        let keyring = system.keyring();
        if !Path::new(&keyring).exists() {
            let hint = "copy the file from a host, where it is below /etc/pki/rpm-gpg, and name it as repository.keyring";
            return Err(failed(system, format!("the keys of the distribution are missing: {keyring}"), hint));
        }
        dnf.prepare().map_err(Error::file("prepare", dir))?;
        dnf.keys("rpmkeys", [OsStr::new("--import"), keyring.as_ref()], |said| {
            let reason = format!("{keyring} holds no key: {}", last_line(said));
            (reason, "name a file with the public keys of the distribution as repository.keyring".to_owned())
        })
        .await?;
        Ok(dnf)
    }

    /// Writes its configuration. Its other directories are below the root.
    fn prepare(&self) -> io::Result<()> {
        for directory in ["root", "none", "repository"] {
            fs::create_dir_all(self.dir.join(directory))?;
        }
        let none = self.path("none")?;
        let mut text = format!(
            "[main]\nreposdir={none}\nvarsdir={none}\npluginconfpath={none}\ncachedir=/cache\nlogdir=/log\npersistdir=/state\n\
             install_weak_deps=0\nbest=1\nretries=3\n"
        );
        for (number, source) in self.system.sources.iter().enumerate() {
            // Signatures are verified below, for each file.
            let _ = writeln!(text, "[source{number}]\nname=source{number}\nbaseurl={source}\ngpgcheck=0");
        }
        fs::write(self.dir.join("dnf.conf"), text)
    }

    /// The file names of packages that provide these names, and of all their dependencies, as if nothing were installed.
    pub(super) async fn resolve(
        &self,
        names: impl IntoIterator<Item = &String>,
    ) -> Result<Vec<String>, Error> {
        // Without an architecture, dnf returns a package for each architecture that the machine can run.
        let words = ["download", "--resolve", "--alldeps", "--url", "--arch", self.arches()].into_iter();
        let urls = self.dnf(words.chain(names.into_iter().map(String::as_str))).await?;
        let mut files: Vec<String> = urls.lines().filter_map(file_of_url).collect();
        files.sort();
        files.dedup();
        if files.is_empty() {
            return Err(failed(
                self.system,
                "dnf has chosen no package".to_owned(),
                "check repository.sources",
            ));
        }
        Ok(files)
    }

    /// The sizes of these files. A file whose name differs from its package's is not included.
    pub(super) async fn sizes(&self, files: &[String]) -> Result<Vec<(String, u64)>, Error> {
        let format = "%{downloadsize} %{name}-%{version}-%{release}.%{arch}.rpm";
        let words = ["repoquery", "--queryformat", format].into_iter();
        let said = self.dnf(words.chain(files.iter().map(|file| package(file)))).await?;
        let size = |line: &str| {
            let (size, file) = line.split_once(' ')?;
            Some((file.to_owned(), size.parse().ok()?))
        };
        Ok(said.lines().filter_map(size).collect())
    }

    /// Fetches files into a directory. A complete file is not fetched again: dnf knows its checksum from the lists.
    pub(super) async fn download(&self, files: &[String], to: &Path) -> Result<(), Error> {
        let words = ["download", "--arch", self.arches(), "--destdir"].map(OsStr::new);
        let words = words.into_iter().chain([to.as_os_str()]);
        self.dnf(words.chain(files.iter().map(|file| OsStr::new(package(file))))).await.map(drop)
    }

    /// Verifies the signatures of files by the keys of the distribution. A file without a valid signature is removed.
    pub(super) async fn verify(&self, files: &[PathBuf]) -> Result<(), Error> {
        for file in files {
            let words = ["--define", "_pkgverify_level all", "--checksig"].map(OsStr::new);
            let words = words.into_iter().chain([file.as_os_str()]);
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let hint =
                "set repository.keyring to the keys that sign these packages, and run again".to_owned();
            let wrong = |_: &str| (format!("{name} has no signature by the keys of the distribution"), hint);
            let result = self.keys("rpmkeys", words, wrong).await;
            if result.is_err() {
                fs::remove_file(file).map_err(Error::file("remove", file))?;
            }
            result?;
        }
        Ok(())
    }

    /// rpm's headers of these files, in their order.
    pub(super) async fn headers(&self, files: &[PathBuf]) -> Result<Vec<Header>, Error> {
        let format = "%{NAME}\\t%|EPOCH?{%{EPOCH}:}:{}|%{VERSION}-%{RELEASE}\\t[%{PROVIDENAME} ]\\n";
        let words = ["--query", "--package", "--nosignature", "--queryformat", format].map(OsStr::new);
        let words = words.into_iter().chain(files.iter().map(|file| file.as_os_str()));
        let said = self.keys("rpm", words, plain).await?;
        let headers: Vec<Header> = said.lines().filter_map(header).collect();
        if headers.len() == files.len() {
            return Ok(headers);
        }
        Err(failed(self.system, "rpm cannot read a package".to_owned(), "run again"))
    }

    /// Creates the lists of a repository with these files: path below its directory, and content. The same files result in the
    /// same lists.
    pub(super) async fn lists(&self, files: &[PathBuf]) -> Result<Vec<(String, Vec<u8>)>, Error> {
        let directory = self.dir.join("repository");
        for file in files {
            let link = directory.join(file.file_name().unwrap_or_default());
            fs::hard_link(file, &link).map_err(Error::file("link", file))?;
            let at = fs::FileTimes::new().set_modified(std::time::UNIX_EPOCH);
            fs::File::options()
                .write(true)
                .open(&link)
                .and_then(|file| file.set_times(at))
                .map_err(Error::file("date", &link))?;
        }
        let words = "--quiet --no-database --simple-md-filenames --revision=0 --set-timestamp-to-revision --checksum=sha256 \
                     --general-compress-type=gz";
        let mut command = Command::new("createrepo_c");
        command.args(words.split_whitespace()).arg(&directory);
        run(command, self.system, MISSING, plain).await?;
        let made = directory.join("repodata");
        let entries = fs::read_dir(&made).map_err(Error::file("read", &made))?;
        let mut lists = Vec::new();
        for entry in entries.flatten() {
            let content = fs::read(entry.path()).map_err(Error::file("read", &made))?;
            lists.push((format!("repodata/{}", entry.file_name().to_string_lossy()), content));
        }
        lists.sort();
        Ok(lists)
    }

    async fn dnf<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Result<String, Error> {
        let mut command = Command::new("dnf");
        let arch = rpm_arch(self.system.arch);
        command.args(["--quiet", "--assumeyes", "--releasever", &self.system.version, "--forcearch", arch]);
        command.arg("--config").arg(self.dir.join("dnf.conf"));
        command.arg("--installroot").arg(self.dir.join("root")).args(words);
        run(command, self.system, MISSING, |said| (reason(said), hint(said).to_owned())).await
    }

    /// Runs a tool of rpm with a separate database.
    async fn keys<S: AsRef<OsStr>>(
        &self,
        program: &str,
        words: impl IntoIterator<Item = S>,
        explain: impl FnOnce(&str) -> (String, String),
    ) -> Result<String, Error> {
        let mut command = Command::new(program);
        command.arg("--dbpath").arg(self.dir.join("keys")).args(words);
        run(command, self.system, MISSING, explain).await
    }

    /// The architectures of packages that run on the hosts.
    fn arches(&self) -> &'static str {
        match self.system.arch {
            Arch::Amd64 => "x86_64,noarch",
            Arch::Arm64 => "aarch64,noarch",
        }
    }

    /// The path of a directory, if a line of the configuration can contain it.
    fn path(&self, name: &str) -> io::Result<String> {
        let dir = self.dir.join(name);
        let text = dir.to_str().filter(|text| !text.contains(|c: char| c.is_whitespace() || c == '$'));
        text.map(str::to_owned).ok_or_else(|| io::Error::other("dnf cannot use a directory with this name"))
    }
}

/// rpm's name of the architecture.
fn rpm_arch(arch: Arch) -> &'static str {
    match arch {
        Arch::Amd64 => "x86_64",
        Arch::Arm64 => "aarch64",
    }
}

/// The file name in a URL; `None` for a line without one.
fn file_of_url(line: &str) -> Option<String> {
    let (_, file) = line.trim().split_once("://")?.1.rsplit_once('/')?;
    file.strip_suffix(".rpm").map(|_| file.to_owned())
}

/// The package of a file in dnf's form: `NAME-VERSION-RELEASE.ARCH`.
fn package(file: &str) -> &str {
    file.strip_suffix(".rpm").unwrap_or(file)
}

fn header(line: &str) -> Option<Header> {
    let mut fields = line.split('\t');
    let (name, version) = (fields.next()?.to_owned(), fields.next()?.to_owned());
    let version = version.strip_prefix("0:").unwrap_or(&version).to_owned();
    let provides = fields.next()?.split_whitespace().map(str::to_owned).collect();
    Some(Header { name, version, provides })
}

fn plain(said: &str) -> (String, String) {
    (last_line(said).to_owned(), "run again; if the problem remains, check repository.sources".to_owned())
}

/// dnf's error messages, in one line.
fn reason(said: &str) -> String {
    let errors: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("Error: ")).collect();
    if errors.is_empty() { last_line(said).to_owned() } else { errors.join("; ") }
}

fn hint(said: &str) -> &'static str {
    if said.contains("No such command: download") {
        "install dnf's plugin download (package dnf-plugins-core)"
    } else if ["No package ", "No match for argument", "nothing provides"]
        .iter()
        .any(|words| said.contains(words))
    {
        "add the sources that have it to repository.sources"
    } else {
        "check the network and repository.sources; downloaded data is kept"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_dnf_and_rpm_print_is_understood() {
        assert_eq!(
            file_of_url("https://m.example/os/Packages/s/socat-1.7-1.el9.x86_64.rpm").unwrap(),
            "socat-1.7-1.el9.x86_64.rpm"
        );
        assert_eq!(file_of_url("Last metadata expiration check: 0:00:01 ago"), None);
        let expected = Header {
            name: "iptables-nft".into(),
            version: "1.8.10-2.el9".into(),
            provides: vec!["iptables".into(), "iptables-nft".into()],
        };
        assert_eq!(header("iptables-nft\t1.8.10-2.el9\tiptables iptables-nft "), Some(expected.clone()));
        assert_eq!(header("iptables-nft\t0:1.8.10-2.el9\tiptables iptables-nft "), Some(expected));
        assert_eq!(header("a\t2:1-1\t").unwrap().version, "2:1-1");
        let said = "x\nError: No package nope available.\n";
        assert_eq!(reason(said), "No package nope available.");
        assert!(hint(said).contains("repository.sources"));
    }
}
