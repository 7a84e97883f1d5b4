//! Helpers that the tests of this crate share: a session for a sample file, and hosts that kk has not changed yet.

use std::{
    collections::BTreeMap,
    io::Write as _,
    path::Path,
    process::{Command, Output, Stdio},
};

use kk_config::Spec;
use kk_connector::HostKeyPolicy;
use kk_engine::Facts;

use crate::{
    base::probed::Probed,
    capabilities::{kube_proxy::services::SERVICES, network::flannel::links::LINKS, os::check::NODE_TOOLS},
    commands::session::{Session, Settings},
    model::options::Options,
};

/// The version of Kubernetes of a file that does not specify a version.
pub(crate) const KUBERNETES: &str = kk_config::DEFAULT_KUBERNETES_VERSION;

/// A file of `config-samples/`.
pub(crate) fn sample(name: &str) -> Spec {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config-samples").join(name);
    let mut spec = spec(&std::fs::read_to_string(path).unwrap());
    // Files of the user's that a sample only names.
    spec.registry.auths.values_mut().for_each(|auth| auth.certs_path = None);
    (spec.download.ca_file, spec.download.catalogue) = (None, None);
    spec
}

/// A Cluster file.
pub(crate) fn spec(text: &str) -> Spec {
    kk_config::load("test.yaml", text, &kk_config::Overrides::default()).unwrap().spec
}

/// Addons as a file has them.
pub(crate) fn addons(field: &str) -> Vec<kk_config::Addon> {
    let text = format!(
        "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {{name: t}}\nspec:\n  hosts: [{{name: a, address: 192.0.2.1}}]\n  \
         roleGroups: {{etcd: [a], control-plane: [a], worker: [a]}}\n  addons: {field}\n"
    );
    spec(&text).addons
}

/// A session that has never run, with this working directory.
pub(crate) fn session(spec: Spec, workdir: &Path) -> Session {
    session_with(spec, workdir, Options::default())
}

/// A session with choices of its run.
pub(crate) fn session_with(spec: Spec, workdir: &Path, options: Options) -> Session {
    let settings =
        Settings { workdir: workdir.to_owned(), templates: None, host_keys: HostKeyPolicy::Strict, options };
    Session::open(spec, settings).unwrap()
}

/// A program for scripts: a file in this directory, of shell text.
///
/// Another process writes it. A file that this one has open, if only in a child that another test is about to start,
/// cannot be run (execve(2), ETXTBSY).
pub(crate) fn program(directory: &Path, name: &str, text: &str) {
    let mut writer = Command::new("sh")
        .args(["-c", "cat >\"$1\" && chmod 755 \"$1\"", "sh"])
        .arg(directory.join(name))
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    writer.stdin.take().unwrap().write_all(format!("#!/bin/sh\n{text}\n").as_bytes()).unwrap();
    assert!(writer.wait().unwrap().success());
}

/// Runs a script in this directory as on a host, with the programs of this directory before the machine's.
pub(crate) fn run_script(directory: &Path, text: &str) -> Output {
    let path = format!("{}:/usr/bin:/bin", directory.display());
    Command::new("sh").args(["-euc", text]).current_dir(directory).env("PATH", path).output().unwrap()
}

/// The functions that scripts find on a host, for a directory that stands for the host's root.
pub(crate) fn library(directory: &Path) -> String {
    kk_engine::LIB.replace("$KK_ROOT/etc", &format!("{}/etc", directory.display()))
}

/// Another user who has a home in a directory that stands for the host's root: the name, and what the owner of a file must
/// be. Only root can become another user; tests that run without root use their own.
pub(crate) fn other_user(directory: &Path, home: &str) -> (String, u32) {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let home = directory.join(home);
    std::fs::create_dir_all(&home).unwrap();
    let me = std::fs::metadata(&home).unwrap().uid();
    let name = Command::new("id").arg("-un").output().unwrap().stdout;
    let (name, owner) = match me {
        // Each system has this user.
        0 => ("nobody".to_owned(), 65534),
        me => (String::from_utf8(name).unwrap().trim().to_owned(), me),
    };
    std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::chown(&home, Some(owner), None).unwrap();
    program(directory, "getent", &format!("echo 'user:x:1:1::{}:/bin/sh'", home.display()));
    (name, owner)
}

/// A certificate, PEM, that is valid for `total` days and has `left` of them left.
pub(crate) fn certificate(total: i64, left: i64) -> String {
    let mut params = rcgen::CertificateParams::new(vec!["test".to_owned()]).unwrap();
    params.not_after = time::OffsetDateTime::now_utc() + time::Duration::days(left);
    params.not_before = params.not_after - time::Duration::days(total);
    params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap().pem()
}

/// Every host as it comes from its installer, with nothing to be found.
pub(crate) fn fresh(spec: &Spec) -> Probed {
    let fact = |host: &kk_config::Host| Facts {
        hostname: host.name.clone(),
        arch: "amd64".into(),
        cpus: 4,
        memory_kib: 8_000_000,
        systemd: true,
        systemd_cgroups: true,
        cgroup_v2: true,
        can_raise_limits: true,
        nameservers: vec!["192.0.2.53".into()],
        addresses: [host.internal_address.to_string()].into(),
        features: ["overlay", "br_netfilter", "vxlan", "ipip"].map(str::to_owned).into(),
        tools: NODE_TOOLS.map(|tool| (tool.to_owned(), format!("/usr/bin/{tool}"))).into(),
        disks: [("/var/lib/kubelet".to_owned(), (100_000_000, 50_000_000))].into(),
        ..Facts::default()
    };
    let facts = spec.hosts.iter().map(|host| (host.name.clone(), fact(host))).collect();
    Probed { facts, failures: BTreeMap::new() }
}

/// A node says that its pods reach Services and the pods of other nodes.
pub(crate) fn connect(facts: &mut Facts) {
    facts.reply(&SERVICES, "dns\tok\napi\tok\n");
    facts.reply(&LINKS, "subnet\t10.233.64.1/24\nroutes\t9\npeer\t10.233.65.0\tok\n");
}
