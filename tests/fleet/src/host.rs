//! One simulated host: its files, units and settings, and what kk's operations do to them.
//!
//! Operations are the functions of `lib.sh` and a table of programs ([`programs`]); whatever else a script holds has no
//! effect that a second run could see. Owned by the task that serves a session, behind a lock: a host has several.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use super::{
    cluster::Cluster,
    disk::Disk,
    programs::{self, Effect},
    shell::words,
};

/// A file, or a directory.
#[derive(Clone, Debug)]
pub(super) struct File {
    pub(super) directory: bool,
    pub(super) mode: String,
    pub(super) owner: String,
    pub(super) sha256: String,
    /// Uptime in milliseconds.
    pub(super) written_ms: u128,
}

/// A unit of systemd.
#[derive(Clone, Debug, Default)]
pub(super) struct Unit {
    pub(super) enabled: bool,
    pub(super) active_since_ms: Option<u128>,
}

/// A host.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) name: String,
    pub(super) address: String,
    pub(super) files: BTreeMap<String, File>,
    pub(super) units: BTreeMap<String, Unit>,
    pub(super) sysctls: BTreeMap<String, String>,
    pub(super) users: BTreeSet<String>,
    pub(super) modules: BTreeSet<String>,
    pub(super) images: BTreeSet<String>,
    /// Lines of `/etc/kubekey/owned`.
    pub(super) owned: Vec<String>,
    pub(super) cluster: Arc<Mutex<Cluster>>,
    pub(super) disk: Arc<Disk>,
}

/// The small files that travel with a script.
pub(super) type Payloads = BTreeMap<String, Vec<u8>>;

/// What an operation did.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) stdout: String,
    /// How long a real host takes for it.
    pub(super) takes: Duration,
}

impl Host {
    /// A host as it comes from its installer.
    pub(super) fn new(name: String, address: String, cluster: Arc<Mutex<Cluster>>, disk: Arc<Disk>) -> Self {
        let directories =
            ["/etc", "/etc/sysctl.d", "/etc/systemd/system", "/opt", "/root", "/usr/local/bin", "/var/lib"];
        let mut host = Self {
            name,
            address,
            files: BTreeMap::new(),
            units: BTreeMap::new(),
            sysctls: BTreeMap::new(),
            users: BTreeSet::new(),
            modules: BTreeSet::from(["overlay".to_owned()]),
            images: BTreeSet::new(),
            owned: Vec::new(),
            cluster,
            disk,
        };
        for path in directories {
            host.directory(path, "755", "root:root", 0);
        }
        host
    }

    /// What `/etc/machine-id` holds.
    pub(super) fn machine_id(&self) -> String {
        format!("{:0>32}", self.address.replace('.', ""))
    }

    /// Carries out one operation at an uptime.
    pub(super) fn operate(&mut self, text: &str, files: &Payloads, now_ms: u128) -> Done {
        let mut done = Done { takes: Duration::from_millis(5), ..Done::default() };
        for line in text.lines() {
            self.library(&words(line), files, now_ms, &mut done);
        }
        for effect in programs::effects(text) {
            done.takes += effect.takes;
            self.program(&effect, text, files, now_ms, &mut done);
        }
        done
    }

    fn library(&mut self, words: &[String], files: &Payloads, now_ms: u128, done: &mut Done) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            ["kk_put", source, path, mode, owner] => {
                let sha256 = match files.get(source) {
                    Some(content) => self.disk.keep(content),
                    None => self.files.get(source).map(|file| file.sha256.clone()).unwrap_or_default(),
                };
                self.own(path, now_ms);
                self.file(path, mode, owner, sha256, now_ms);
            }
            ["kk_attributes", path, mode, owner] => {
                if let Some(file) = self.files.get_mut(path) {
                    (file.mode, file.owner) = (mode.to_owned(), owner.to_owned());
                }
            }
            ["kk_dir", path, mode, owner] => {
                self.parents(path, now_ms);
                if !self.files.contains_key(path) {
                    self.record(format!("dir\t{path}"));
                }
                self.directory(path, mode, owner, now_ms);
            }
            ["kk_belong", name, ca] => self.record(format!("cluster\t{name}\t{ca}\t{}", self.machine_id())),
            ["kk_own", path] => self.own(path, now_ms),
            ["kk_block", path, begin, end, source] => {
                let content =
                    files.get(source).map(|content| String::from_utf8_lossy(content)).unwrap_or_default();
                // Questions may read the file itself.
                let sum = self.disk.keep(format!("{begin}\n{content}{end}\n").as_bytes());
                self.file(path, "644", "root:root", sum, now_ms);
            }
            ["kk_sysctl", name, value] => drop(self.sysctls.insert(name.to_owned(), value.to_owned())),
            ["kk_module", name] => drop(self.modules.insert(name.to_owned())),
            ["kk_user", name, ..] => drop(self.users.insert(name.to_owned())),
            ["kk_unit", name, enabled, state, ..] => {
                self.unit(name, enabled, state, now_ms);
                done.takes += programs::UNIT;
            }
            ["kk_record", line] => self.record(line.replace("${KK_TAB}", "\t")),
            _ => {}
        }
    }

    fn program(&mut self, effect: &Effect, text: &str, files: &Payloads, now_ms: u128, done: &mut Done) {
        match effect.name {
            "pull" => {
                let images = text.lines().find_map(|line| line.strip_prefix("set -- "));
                self.images.extend(images.map(words).unwrap_or_default());
            }
            "init" | "join" => {
                self.join(effect.name == "init" || text.contains("base64 -d pki."), now_ms);
            }
            "label" => self.label(text),
            "apply" => self.lock(|cluster| cluster.applied = true),
            "record" => self.objects(files, now_ms),
            "sums" => self.manifest_sums(now_ms),
            "read-ca" => done.stdout = String::from_utf8_lossy(programs::CA).into_owned(),
            "share" => done.stdout = programs::shared(text),
            _ => {}
        }
    }

    /// What `kubeadm init` and `kubeadm join` leave behind.
    fn join(&mut self, control_plane: bool, now_ms: u128) {
        self.directory("/etc/kubernetes", "755", "root:root", now_ms);
        self.directory("/etc/kubernetes/pki", "755", "root:root", now_ms);
        self.directory("/etc/kubernetes/manifests", "755", "root:root", now_ms);
        let mut made = vec![
            ("/etc/kubernetes/kubelet.conf", &b"    client-certificate-data: QQ==\n"[..]),
            ("/etc/kubernetes/pki/ca.crt", programs::CA),
            // What flannel writes when it runs, a moment later.
            ("/etc/cni/net.d/10-flannel.conflist", b"{}"),
            ("/opt/cni/bin/flannel", b"flannel"),
        ];
        if control_plane {
            made.extend([
                ("/etc/kubernetes/admin.conf", programs::ADMIN),
                ("/etc/kubernetes/pki/apiserver.crt", programs::CA),
                // Keys of CAs are kept elsewhere.
                ("/etc/kubernetes/pki/sa.key", b"key"),
                ("/etc/kubernetes/pki/sa.pub", b"pub"),
                ("/etc/kubernetes/pki/front-proxy-ca.crt", programs::CA),
                ("/etc/kubernetes/manifests/kube-apiserver.yaml", b"api"),
                ("/etc/kubernetes/manifests/kube-controller-manager.yaml", b"manager"),
                ("/etc/kubernetes/manifests/kube-scheduler.yaml", b"scheduler"),
            ]);
        }
        for (path, content) in made {
            let sum = self.disk.keep(content);
            self.file(path, "600", "root:root", sum, now_ms);
        }
        self.unit("kubelet.service", "yes", "start", now_ms);
        let name = self.name.clone();
        self.lock(|cluster| cluster.add(name, control_plane));
    }

    /// The notes of objects that were applied, from the files of their keys.
    fn objects(&mut self, files: &Payloads, now_ms: u128) {
        for (name, keys) in files.iter().filter_map(|(name, keys)| Some((name.strip_suffix(".keys")?, keys)))
        {
            let keys = String::from_utf8_lossy(keys);
            let mut lines: Vec<String> = keys.lines().map(Cluster::object).collect();
            lines.sort();
            let sum = self.disk.keep(lines.concat().as_bytes());
            let path = format!("/etc/kubernetes/kubekey/{name}.objects");
            self.file(&path, "600", "root:root", sum, now_ms);
        }
    }

    /// The note of the manifests' sums.
    fn manifest_sums(&mut self, now_ms: u128) {
        let manifests = "/etc/kubernetes/manifests/";
        let line = |(path, file): (&String, &File)| {
            Some(format!("{}  {}\n", file.sha256, path.strip_prefix(manifests)?))
        };
        let text: String = self.files.iter().filter_map(line).collect();
        let sum = self.disk.keep(text.as_bytes());
        self.file("/etc/kubernetes/kubekey/manifests.sums", "600", "root:root", sum, now_ms);
    }

    fn label(&mut self, text: &str) {
        for line in text.lines().filter(|line| line.starts_with("kubectl label ")) {
            let words = words(line);
            let names = words.iter().skip(4).take_while(|word| !word.contains(['=', '>']));
            let labels: Vec<&String> = words.iter().filter(|word| word.contains('=')).collect();
            self.lock(|cluster| cluster.label(names, &labels));
        }
    }

    fn own(&mut self, path: &str, now_ms: u128) {
        self.parents(path, now_ms);
        let kind = if self.files.contains_key(path) { "saved" } else { "made" };
        if !path.starts_with("/etc/kubekey/")
            && !self.owned.iter().any(|line| line.ends_with(&format!("\t{path}")))
        {
            self.record(format!("{kind}\t{path}"));
        }
    }

    fn parents(&mut self, path: &str, now_ms: u128) {
        for (at, _) in path.match_indices('/').skip(1) {
            if !self.files.contains_key(&path[..at]) {
                self.record(format!("dir\t{}", &path[..at]));
                self.directory(&path[..at], "755", "root:root", now_ms);
            }
        }
    }

    fn record(&mut self, line: String) {
        if !self.owned.contains(&line) {
            self.owned.push(line);
        }
    }

    /// A file appears.
    pub(super) fn file(&mut self, path: &str, mode: &str, owner: &str, sha256: String, written_ms: u128) {
        let (mode, owner) = (mode.to_owned(), owner.to_owned());
        self.files.insert(path.to_owned(), File { directory: false, mode, owner, sha256, written_ms });
    }

    fn directory(&mut self, path: &str, mode: &str, owner: &str, written_ms: u128) {
        let (mode, owner, sha256) = (mode.to_owned(), owner.to_owned(), String::new());
        self.files.insert(path.to_owned(), File { directory: true, mode, owner, sha256, written_ms });
    }

    fn unit(&mut self, name: &str, enabled: &str, state: &str, now_ms: u128) {
        let unit = self.units.entry(name.to_owned()).or_default();
        match enabled {
            "yes" => unit.enabled = true,
            "no" => unit.enabled = false,
            _ => {}
        }
        match state {
            "start" if unit.active_since_ms.is_some() => {}
            "start" | "restart" => unit.active_since_ms = Some(now_ms),
            "stop" => unit.active_since_ms = None,
            _ => {}
        }
        if name == "etcd.service" && unit.active_since_ms.is_some() {
            let wal = self.disk.keep(b"");
            self.file("/var/lib/etcd/member/wal/0.wal", "600", "root:root", wal, now_ms);
        }
        self.record(format!("unit-on\t{name}"));
    }

    fn lock<T>(&self, work: impl FnOnce(&mut Cluster) -> T) -> T {
        work(&mut self.cluster.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}
