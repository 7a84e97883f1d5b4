//! A real sshd on a free loopback port, with keys of its own, for one test.

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use kk_config::PrivateKey;
use kk_connector::{SshConfig, SshConnection};
use tempfile::TempDir;

const SSHD: &str = "/usr/sbin/sshd";

pub(crate) struct Sshd {
    child: Child,
    pub(crate) dir: TempDir,
    pub(crate) port: u16,
}

impl Sshd {
    /// Starts sshd with additional lines of configuration (in sshd, the first value wins).
    pub(crate) fn start(settings: &str) -> Self {
        assert!(Path::new(SSHD).exists(), "{SSHD} is missing: apt-get install openssh-server");
        let dir = tempfile::tempdir().unwrap();
        if is_root() {
            // sshd drops its privileges in this directory, which the Debian package creates at boot.
            fs::DirBuilder::new().recursive(true).mode(0o755).create("/run/sshd").unwrap();
        }
        for kind in ["ed25519", "ecdsa"] {
            keygen(&dir.path().join(format!("host_{kind}")), kind, "");
        }
        keygen(&dir.path().join("id_ed25519"), "ed25519", "");
        fs::copy(dir.path().join("id_ed25519.pub"), dir.path().join("authorized_keys")).unwrap();
        let path = dir.path().display();
        let settings = format!(
            "{settings}\nListenAddress 127.0.0.1\nHostKey {path}/host_ed25519\nHostKey {path}/host_ecdsa\n\
             AuthorizedKeysFile {path}/authorized_keys\nStrictModes no\nUsePAM no\nPidFile none\n\
             PermitRootLogin yes\nMaxStartups 50\n{}",
            stub_sudo(dir.path())
        );
        // Another test may bind a free port first. Then this sshd exits, and the other sshd would answer.
        for _ in 0..10 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            fs::write(dir.path().join("sshd_config"), format!("Port {port}\n{settings}")).unwrap();
            let mut child = spawn(dir.path());
            if listens(dir.path(), &mut child) {
                return Self { child, dir, port };
            }
        }
        panic!("sshd finds no free port: {}", fs::read_to_string(dir.path().join("log")).unwrap_or_default());
    }

    /// The configuration to reach it with the key that it accepts.
    pub(crate) fn config(&self) -> SshConfig {
        let user = String::from_utf8(Command::new("id").arg("-un").output().unwrap().stdout).unwrap();
        SshConfig {
            port: self.port,
            private_key: Some(PrivateKey::Path(self.path("id_ed25519").display().to_string())),
            timeout: Duration::from_secs(20),
            known_hosts: self.path("known_hosts"),
            ..SshConfig::new("node1", "127.0.0.1", user.trim())
        }
    }

    pub(crate) fn connect(&self) -> SshConnection {
        SshConnection::new(self.config())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The number of sessions that it serves.
    pub(crate) fn sessions(&self) -> usize {
        let pid = self.child.id().to_string();
        let children = Command::new("ps").args(["-o", "pid=", "--ppid", &pid]).output().unwrap().stdout;
        String::from_utf8(children).unwrap().lines().count()
    }

    /// Ends the daemon and every session, like a reboot of the host.
    pub(crate) fn cut(&self) {
        let pid = self.child.id().to_string();
        let children = Command::new("ps").args(["-o", "pid=", "--ppid", &pid]).output().unwrap().stdout;
        for child in String::from_utf8(children).unwrap().split_whitespace() {
            let grandchildren =
                Command::new("ps").args(["-o", "pid=,comm=", "--ppid", child]).output().unwrap();
            // For a user other than root there is no second sshd below the session's.
            for line in
                String::from_utf8(grandchildren.stdout).unwrap().lines().filter(|line| line.contains("sshd"))
            {
                kill(line.split_whitespace().next().unwrap());
            }
            kill(child);
        }
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.cut();
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn kill(pid: &str) {
    // The process may have ended by itself.
    let _ = Command::new("kill").args(["-KILL", pid]).stderr(Stdio::null()).status().unwrap();
}

fn spawn(dir: &Path) -> Child {
    let log = fs::File::create(dir.join("log")).unwrap();
    Command::new(SSHD).args(["-D", "-e", "-f"]).arg(dir.join("sshd_config")).stderr(log).spawn().unwrap()
}

/// Waits until this sshd listens. `false`: it has exited.
fn listens(dir: &Path, child: &mut Child) -> bool {
    let begin = Instant::now();
    loop {
        let log = fs::read_to_string(dir.join("log")).unwrap_or_default();
        if log.contains("Server listening on") {
            return true;
        }
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "sshd does not listen: {log}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Creates a key pair.
pub(crate) fn keygen(path: &Path, kind: &str, passphrase: &str) {
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", kind, "-b", if kind == "rsa" { "2048" } else { "256" }, "-N", passphrase, "-f"])
        .arg(path)
        .output()
        .expect("ssh-keygen is missing: apt-get install openssh-client");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

pub(crate) fn is_root() -> bool {
    Command::new("id").arg("-u").output().unwrap().stdout == b"0\n"
}

/// Without root, sessions get a `sudo` that permits everything, so that the tests run for any user.
fn stub_sudo(dir: &Path) -> String {
    if is_root() {
        return String::new();
    }
    let bin = dir.join("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("sudo"), "#!/bin/sh\nwhile [ \"${1#-}\" != \"$1\" ]; do shift; done\nexec \"$@\"\n")
        .unwrap();
    fs::set_permissions(bin.join("sudo"), fs::Permissions::from_mode(0o755)).unwrap();
    format!("SetEnv PATH={}:/usr/bin:/bin:/usr/sbin:/sbin\n", bin.display())
}
