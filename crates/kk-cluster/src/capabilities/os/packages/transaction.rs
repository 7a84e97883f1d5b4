//! Changes that a package manager of a host would make, read from its own output.

use std::collections::{BTreeMap, BTreeSet};

use kk_artifact::bundle::{ContentFile, HostPackages, PackagePart};
use kk_engine::Failure;

/// How packages of a bundle are installed on a host.
pub(super) struct Manager {
    /// The name of its command.
    pub name: &'static str,
    /// A shell function that uses only the repository of the bundle.
    function: &'static str,
    /// A script that prints the changes.
    pub choose: &'static str,
    /// A script that makes the changes.
    pub install: &'static str,
    /// Parses the output of `choose`.
    pub parse: fn(&str) -> Transaction,
}

const APT: Manager = Manager {
    name: "apt",
    function: include_str!("apt.sh"),
    choose: include_str!("choose_packages.sh"),
    install: include_str!("install_packages.sh"),
    parse: Transaction::of_apt,
};

const DNF: Manager = Manager {
    name: "dnf",
    function: include_str!("dnf.sh"),
    choose: include_str!("choose_rpms.sh"),
    install: include_str!("install_rpms.sh"),
    parse: Transaction::of_dnf,
};

impl Manager {
    /// The package manager for these packages.
    pub(super) fn of(packages: &HostPackages) -> &'static Self {
        if packages.is_rpm() { &DNF } else { &APT }
    }

    /// A script with the function and these arguments.
    pub(super) fn script<S: AsRef<str>>(&self, arguments: impl IntoIterator<Item = S>, text: &str) -> String {
        let words: Vec<String> =
            arguments.into_iter().map(|word| kk_connector::quote(word.as_ref()).to_string()).collect();
        format!("{}set -- {}\n{text}", self.function, words.join(" "))
    }
}

/// Changes that a package manager would make.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Transaction {
    /// Name and version of the packages to unpack.
    pub unpacked: Vec<(String, String)>,
    /// New packages. apt lists them in the order in which they are configured, each after the packages that it needs.
    pub added: Vec<String>,
    /// Packages that are installed in another version: name, old and new version.
    pub upgraded: Vec<(String, String, String)>,
}

impl Transaction {
    /// Reads a simulation: `Inst NAME [OLD] (NEW …)`, and `Conf NAME (NEW …)`.
    fn of_apt(simulation: &str) -> Self {
        let mut found = Self::default();
        let mut set_up = Vec::new();
        for line in simulation.lines() {
            let Some((word, rest)) = line.split_once(' ') else { continue };
            let Some((name, rest)) = rest.split_once(' ') else { continue };
            match word {
                "Conf" => set_up.push(name.to_owned()),
                "Inst" => {
                    let new = rest.split_once('(').map_or("", |(_, new)| new);
                    let new = new.split([' ', ')']).next().unwrap_or_default();
                    found.unpacked.push((name.to_owned(), new.to_owned()));
                    if let Some((old, _)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
                        found.upgraded.push((name.to_owned(), old.to_owned(), new.to_owned()));
                    }
                }
                _ => {}
            }
        }
        let upgraded: BTreeSet<&String> = found.upgraded.iter().map(|(name, ..)| name).collect();
        found.added = set_up.into_iter().filter(|name| !upgraded.contains(name)).collect();
        found
    }

    /// Parses `installed NAME VERSION` for each installed package, then the table of dnf. Its rows are `NAME ARCH VERSION
    /// REPOSITORY SIZE UNIT`. A row with a long name continues in the next line.
    fn of_dnf<'a>(said: &'a str) -> Self {
        let one = |line: &'a str| line.strip_prefix("installed ")?.split_once(' ');
        let installed: BTreeMap<&str, &str> = said.lines().filter_map(one).collect();
        // Before the table, dnf prints how fast it read the repository.
        let is_head = |line: &str| {
            ["Installing", "Upgrading", "Downgrading"].iter().any(|word| line.starts_with(word))
                && line.ends_with(':')
        };
        let table = said.lines().skip_while(|line| !is_head(line));
        let table = table.take_while(|line| !line.starts_with("Transaction Summary"));
        let words: Vec<&str> = table.flat_map(str::split_whitespace).collect();
        let mut found = Self::default();
        for row in words.windows(4).filter(|row| row[3] == "kk-bundle") {
            // A newer dnf prints an epoch of 0, too.
            let (name, new) = (row[0].to_owned(), row[2].strip_prefix("0:").unwrap_or(row[2]).to_owned());
            match installed.get(row[0]) {
                Some(old) => found.upgraded.push((name.clone(), (*old).to_owned(), new.clone())),
                None => found.added.push(name.clone()),
            }
            found.unpacked.push((name, new));
        }
        found
    }

    /// The files of the packages to unpack.
    pub(super) fn files<'a>(
        &self,
        packages: &'a [(PackagePart, ContentFile)],
    ) -> Result<Vec<&'a ContentFile>, Failure> {
        let file = |(name, version): &(String, String)| {
            let found = packages.iter().find(|(part, _)| part.name == *name && part.version == *version);
            found
                .map(|(_, file)| file)
                .ok_or_else(|| Failure::new(format!("{name} {version} is not in the bundle")))
        };
        self.unpacked.iter().map(file).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;
    use std::path::PathBuf;
    use std::process::{Command, Stdio};

    use super::*;

    const REPOSITORY: &str =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../kk-artifact/tests/fixtures/repository-rpm");

    /// A host without packages, for the dnf and rpm of the test machine.
    struct Host(tempfile::TempDir);

    impl Host {
        fn new() -> Self {
            let host = Self(tempfile::tempdir().unwrap());
            // dnf installs packages only as root; in its own namespace, every user is root.
            let wrapper = "root=$1; cat >\"$2\"; chmod 755 \"$2\"";
            for (name, words) in [("dnf", "--installroot"), ("rpm", "--root")] {
                let text = format!(
                    "#!/bin/sh\nPATH=${{PATH#*:}}\n[ \"$(id -u)\" = 0 ] || alone='unshare --map-root-user'\n\
                     exec $alone {name} {words} '{}' \"$@\"\n",
                    host.path("root").display()
                );
                fs::create_dir_all(host.path("bin")).unwrap();
                host.sh(wrapper, &[&host.text("root"), &host.text(&format!("bin/{name}"))], &text);
            }
            host
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn text(&self, name: &str) -> String {
            self.path(name).display().to_string()
        }

        fn sh(&self, script: &str, words: &[&str], input: &str) -> String {
            let path = format!("{}:{}", self.text("bin"), std::env::var("PATH").unwrap());
            let mut command = Command::new("sh");
            command.args(["-euc", script, "sh"]).args(words).current_dir(self.0.path());
            command.env("PATH", path).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().unwrap();
            child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
            let output = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
            said
        }

        /// Runs a script in a directory with the lists of the repository.
        fn run(&self, script: &str) -> String {
            let place = format!(
                "rm -rf script; mkdir script; cd script; cp {REPOSITORY}/repodata/* .\n\
                 kk_own() {{ mkdir -p \"${{1%/*}}\"; }}; unfinished=''; KK_TAB=' '\n\
                 kk_record() {{ printf '%s\\n' \"$1\" >>../owned; }}\n"
            );
            self.sh(&format!("{place}{script}"), &[], "")
        }
    }

    /// Uses the real dnf and rpm of the test machine, with a separate root directory.
    #[test]
    fn rpms_are_chosen_and_installed_and_then_nothing_is_left_to_do() {
        installs("kk-test-command");
        // As after a killed run.
        installs("");
    }

    fn installs(wanted: &str) {
        let host = Host::new();
        let choose = DNF.script(["kk-test-command"], DNF.choose);
        let transaction = (DNF.parse)(&host.run(&choose));
        let mut added = transaction.added.clone();
        added.sort();
        assert_eq!(added, ["kk-test-library", "kk-test-tool"]);
        assert!(transaction.unpacked.contains(&pair("kk-test-tool", "2:1.0~rc1^x-1.el9")));

        let repository = host.text("packages");
        host.sh("mkdir packages; cp \"$1\"/*-[lt]*-*.rpm packages", &[REPOSITORY], "");
        let variables = [("repository", repository.as_str()), ("wanted", wanted)];
        host.run(&crate::base::shell::script(&variables, &DNF.script(&transaction.added, DNF.install)));
        let installed = host.sh("rpm -qa --queryformat '%{NAME}\\n' | sort", &[], "");
        assert_eq!(installed, "kk-test-library\nkk-test-tool\n");
        let owned = fs::read_to_string(host.path("owned")).unwrap();
        assert_eq!(owned.trim(), format!("rpms {}", transaction.added.join(" ")));
        assert!(!host.path("packages").exists());
        assert_eq!((DNF.parse)(&host.run(&choose)), Transaction::default());
    }

    fn pair(name: &str, version: &str) -> (String, String) {
        (name.to_owned(), version.to_owned())
    }

    #[test]
    fn apt_says_what_is_new_and_in_which_order() {
        let said = "Reading package lists...\nInst libc6 [2.36-9+deb12u4] (2.36-9+deb12u14 local [amd64])\n\
            Inst libwrap0 (7.6.q-32 local [amd64])\nInst socat (1.7.4.4-2 [amd64])\nInst less (2:590) []\n\
            Conf libc6 (2.36-9+deb12u14 local [amd64])\nConf libwrap0 (7.6.q-32 local [amd64])\nConf socat (1.7.4.4-2)\n";
        let (old, new) = ("2.36-9+deb12u4".to_owned(), "2.36-9+deb12u14".to_owned());
        let expected = Transaction {
            unpacked: vec![
                pair("libc6", &new),
                pair("libwrap0", "7.6.q-32"),
                pair("socat", "1.7.4.4-2"),
                pair("less", "2:590"),
            ],
            added: vec!["libwrap0".into(), "socat".into()],
            upgraded: vec![("libc6".into(), old, new)],
        };
        assert_eq!(Transaction::of_apt(said), expected);
        let part = PackagePart {
            system: "debian".into(),
            system_version: "12".into(),
            arch: "amd64".into(),
            name: "socat".into(),
            version: "1.7.4.4-3".into(),
            provides: Vec::new(),
            path: String::new(),
        };
        let file = ContentFile { digest: String::new(), path: String::new(), sha256: String::new() };
        let said = expected.files(&[(part, file)]).unwrap_err().to_string();
        assert!(said.contains("libc6"), "{said}");
    }

    /// Output of dnf 4.14.
    #[test]
    fn dnf_says_what_is_new_and_what_another_version_gets() {
        let said = "installed bash 5.1.8-9.el9\ninstalled glibc 2.34-100.el9\n\
            kk-bundle                                       3.5 MB/s | 825  B     00:00    \nDependencies resolved.\n\
            ================================================================================\n \
            Package                 Architecture   Version           Repository       Size\n\
            ================================================================================\n\
            Installing:\n socat                   x86_64         1.7-1.el9         kk-bundle       6.0 k\n\
            Upgrading:\n glibc                   x86_64         2.34-125.el9      kk-bundle       1.9 M\n\
            Installing dependencies:\n a-package-with-a-name-that-is-long\n                         \
            noarch         2:1.4-1.el9       kk-bundle       6.0 k\n libwrap  x86_64  0:1.0-1.el9  kk-bundle  6.0 KiB\n\n\
            Transaction Summary\n================================================================================\n\
            Install  3 Packages\nUpgrade  1 Package\n\nTotal size: 18 k\nOperation aborted.\n";
        let long = "a-package-with-a-name-that-is-long";
        let expected = Transaction {
            unpacked: vec![
                pair("socat", "1.7-1.el9"),
                pair("glibc", "2.34-125.el9"),
                pair(long, "2:1.4-1.el9"),
                pair("libwrap", "1.0-1.el9"),
            ],
            added: vec!["socat".into(), long.into(), "libwrap".into()],
            upgraded: vec![("glibc".into(), "2.34-100.el9".into(), "2.34-125.el9".into())],
        };
        assert_eq!(Transaction::of_dnf(said), expected);
        assert_eq!(Transaction::of_dnf("Nothing to do.\nComplete!\n"), Transaction::default());
    }
}
