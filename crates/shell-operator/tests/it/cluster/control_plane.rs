//! An API server of our own. The tests of `ks-installer` use this file, too.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType};
use tempfile::TempDir;

use super::programs;

/// Certificate and key of X.509 version 1, as `openssl x509` makes them without extensions.
const VERSION_1: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../shell-operator/tests/fixtures/x509-v1/client");

/// etcd, kube-apiserver and kube-controller-manager. They end with this value, or with the test's process.
pub(crate) struct ControlPlane {
    dir: TempDir,
    api_port: u16,
    etcd_port: u16,
    arguments: Vec<String>,
    processes: Vec<(String, Child)>,
}

/// The control plane that most tests share.
pub(crate) fn shared() -> &'static ControlPlane {
    static SHARED: OnceLock<Option<ControlPlane>> = OnceLock::new();
    // A start that failed is not tried again by every test.
    let started = SHARED.get_or_init(|| std::panic::catch_unwind(ControlPlane::start).ok());
    started.as_ref().expect("the control plane did not start; the first failed test says why")
}

/// Waits until kubectl prints what is expected, on the control plane that most tests share.
pub(crate) fn eventually(line: &str, expected: &str) {
    let until = Instant::now() + Duration::from_secs(40);
    loop {
        let last = shared().try_kubectl(line).unwrap_or_else(|error| error);
        if last.trim() == expected {
            return;
        }
        assert!(Instant::now() < until, "kubectl {line}: expected {expected:?}, got {last:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

impl ControlPlane {
    /// Starts all of it and waits until the API server is ready.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same with more arguments for the API server.
    pub(crate) fn start_with(arguments: &[String]) -> Self {
        let dir = TempDir::new().unwrap();
        write_certificates(dir.path());
        let mut plane = Self {
            dir,
            api_port: free_port(),
            etcd_port: free_port(),
            arguments: Vec::new(),
            processes: Vec::new(),
        };
        std::fs::write(plane.kubeconfig(), plane.kubeconfig_text("admin")).unwrap();
        plane.start_etcd();
        plane.arguments = arguments.to_vec();
        plane.start_api_server();
        plane.start_controllers();
        plane
    }

    /// A kubeconfig that may do everything.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.dir.path().join("kubeconfig")
    }

    /// A kubeconfig of the user `limited`, who may do nothing without a role.
    pub(crate) fn limited_kubeconfig(&self) -> PathBuf {
        let path = self.dir.path().join("limited");
        std::fs::write(&path, self.kubeconfig_text("limited")).unwrap();
        path
    }

    /// A kubeconfig of the user `nobody`, whose certificate is of X.509 version 1.
    pub(crate) fn version_1_kubeconfig(&self) -> PathBuf {
        let path = self.dir.path().join("version-1");
        let own = self.dir.path().join("limited");
        let text = self.kubeconfig_text("limited");
        std::fs::write(&path, text.replace(&own.display().to_string(), VERSION_1)).unwrap();
        path
    }

    fn kubeconfig_text(&self, user: &str) -> String {
        let (dir, port) = (self.dir.path().display(), self.api_port);
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: x\n\
             contexts: [{{name: x, context: {{cluster: c, user: u}}}}]\n\
             clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:{port}', certificate-authority: {dir}/ca.crt}}}}]\n\
             users: [{{name: u, user: {{client-certificate: {dir}/{user}.crt, client-key: {dir}/{user}.key}}}}]\n"
        )
    }

    /// Runs kubectl with arguments, split as a shell would; returns the output, or panics when it fails.
    pub(crate) fn kubectl(&self, line: &str) -> String {
        self.try_kubectl(line).unwrap_or_else(|error| panic!("kubectl {line}: {error}"))
    }

    pub(crate) fn try_kubectl(&self, line: &str) -> Result<String, String> {
        let output = Command::new("bash")
            .args(["-c", &format!("\"$KUBECTL\" {line}")])
            .env("KUBECTL", programs::find("kubernetes-", "kubectl"))
            .env("KUBECONFIG", self.kubeconfig())
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    /// Creates or changes the objects of `yaml`.
    pub(crate) fn apply(&self, yaml: &str) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), yaml).unwrap();
        self.kubectl(&format!("apply -f {}", file.path().display()));
    }

    fn start_etcd(&mut self) {
        let (client, peer) =
            (format!("http://127.0.0.1:{}", self.etcd_port), format!("http://127.0.0.1:{}", free_port()));
        let data = self.dir.path().join("etcd");
        let arguments = [
            format!("--data-dir={}", data.display()),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
            "--unsafe-no-fsync".to_owned(),
        ];
        // The program has this name when it is built from etcd's module `server`.
        self.spawn("etcd", &programs::find("etcd-", "server"), &arguments);
    }

    /// Starts the API server and waits until it is ready.
    pub(crate) fn start_api_server(&mut self) {
        let file = |name: &str| self.dir.path().join(name).display().to_string();
        let arguments = [
            format!("--etcd-servers=http://127.0.0.1:{}", self.etcd_port),
            format!("--secure-port={}", self.api_port),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--tls-cert-file={}", file("server.crt")),
            format!("--tls-private-key-file={}", file("server.key")),
            format!("--client-ca-file={}", file("clients.crt")),
            format!("--service-account-key-file={}", file("server.pub")),
            format!("--service-account-signing-key-file={}", file("server.key")),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            "--authorization-mode=RBAC".to_owned(),
            "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
            "--shutdown-delay-duration=0s".to_owned(),
            // No controller creates service accounts, so pods have to do without.
            "--disable-admission-plugins=ServiceAccount".to_owned(),
        ];
        let arguments = [&arguments[..], &self.arguments[..]].concat();
        self.spawn("kube-apiserver", &programs::find("kubernetes-", "kube-apiserver"), &arguments);
        let until = Instant::now() + Duration::from_mins(1);
        while self.try_kubectl("get --raw /readyz").is_err() {
            assert!(Instant::now() < until, "the API server is not ready:\n{}", self.log("kube-apiserver"));
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// The controllers that delete the objects of a namespace and the children of an owner.
    fn start_controllers(&mut self) {
        let arguments = [
            format!("--kubeconfig={}", self.kubeconfig().display()),
            "--controllers=namespace-controller,garbage-collector-controller".to_owned(),
            "--secure-port=0".to_owned(),
            "--leader-elect=false".to_owned(),
        ];
        let program = programs::find("kubernetes-", "kube-controller-manager");
        self.spawn("kube-controller-manager", &program, &arguments);
    }

    /// Kills a process of the control plane.
    pub(crate) fn kill(&mut self, name: &str) {
        for (_, child) in self.processes.iter_mut().filter(|(known, _)| known == name) {
            // Closing its stdin makes the guard kill the program.
            drop(child.stdin.take());
            child.wait().unwrap();
        }
        self.processes.retain(|(known, _)| known != name);
    }

    fn spawn(&mut self, name: &str, program: &Path, arguments: &[String]) {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.log_path(name)).unwrap();
        // The shell in front ends the program when this process ends, however it does.
        let guard = "\"$@\" & P=$!; cat > /dev/null; kill -9 $P; wait $P 2> /dev/null";
        let child = Command::new("sh")
            .args(["-c", guard, name])
            .arg(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.processes.push((name.to_owned(), child));
    }

    fn log_path(&self, name: &str) -> PathBuf {
        self.dir.path().join(format!("{name}.log"))
    }

    fn log(&self, name: &str) -> String {
        let text = std::fs::read_to_string(self.log_path(name)).unwrap_or_default();
        text.lines().rev().take(15).collect::<Vec<_>>().join("\n")
    }

    /// The address of etcd.
    pub(crate) fn etcd(&self) -> String {
        format!("http://127.0.0.1:{}", self.etcd_port)
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        for (_, child) in &mut self.processes {
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }
}

/// A port without a listener. It is outside the range that the kernel assigns to connections: any of these ports may be taken
/// before it is used.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        // Test programs that run concurrently begin at different ports.
        let number = std::process::id() * 97 + NEXT.fetch_add(1, Ordering::Relaxed);
        let port = u16::try_from(20_000 + number % 10_000).unwrap();
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

/// A certificate authority, and certificates of the server and two users.
fn write_certificates(dir: &Path) {
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = CertificateParams::default();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.distinguished_name.push(DnType::CommonName, "test-ca");
    let ca_cert = ca.self_signed(&ca_key).unwrap();
    std::fs::write(dir.join("ca.crt"), ca_cert.pem()).unwrap();
    // The issuer of the version 1 certificate is not known any more: the API server trusts the certificate by itself.
    let version_1 = std::fs::read_to_string(format!("{VERSION_1}.crt")).unwrap();
    std::fs::write(dir.join("clients.crt"), ca_cert.pem() + &version_1).unwrap();
    let issuer = Issuer::new(ca, ca_key);
    for (name, group) in [("server", ""), ("admin", "system:masters"), ("limited", "nobody")] {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.distinguished_name.push(DnType::OrganizationName, group);
        params.subject_alt_names = vec![SanType::IpAddress(Ipv4Addr::LOCALHOST.into())];
        let cert = params.signed_by(&key, &issuer).unwrap();
        std::fs::write(dir.join(format!("{name}.crt")), cert.pem()).unwrap();
        std::fs::write(dir.join(format!("{name}.key")), key.serialize_pem()).unwrap();
        std::fs::write(dir.join(format!("{name}.pub")), key.public_key_pem()).unwrap();
    }
}
