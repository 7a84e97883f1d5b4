//! A recorded run on three hosts, as its listeners saw it: a note, transfers, a retry, and optionally a failure.

use std::collections::BTreeMap;

use kk_engine::{
    Event, EventKind, FailedTask, Failure, Finding, Node, Outcome, Output, PlannedTask, Problem, Severity,
    Summary,
};

/// The hosts of the run; the last is the control machine.
pub(crate) const HOSTS: [&str; 4] = ["node1", "node2", "node3", "control"];

/// The cause of the failure in [`failing`], with all fields of a failure.
pub(crate) fn failure() -> Failure {
    Failure {
        cause: "kubeadm ended with an error".into(),
        command: Some("kubeadm init --config /etc/kubernetes/kubeadm-config.yaml".into()),
        code: Some(1),
        stderr: vec![
            "error execution phase preflight: [preflight] Some fatal errors occurred:".into(),
            "        [ERROR Port-10250]: Port 10250 is in use".into(),
        ],
        hint: Some("port 10250 is used by `python3` on node1; stop it".into()),
        transient: false,
        ..Failure::default()
    }
}

/// A run that ends well.
pub(crate) fn succeeding() -> Vec<Event> {
    let mut run = Run::begun();
    run.download();
    run.etcd();
    run.task(
        "node1",
        "kubernetes",
        "init_cluster",
        "Initialise the cluster",
        8000,
        changed("run kubeadm init"),
    );
    run.at(EventKind::ModuleFinished { module: "kubernetes".into(), took_ms: 8000 });
    run.at(EventKind::Summary(Summary {
        message: "cluster prod is ready".into(),
        nodes: vec![Node {
            name: "node1".into(),
            address: "10.0.0.1".into(),
            roles: vec!["control-plane".into(), "etcd".into()],
        }],
        outputs: vec![Output { name: "kubeconfig".into(), value: "./kubekey/prod/kubeconfig".into() }],
        next: None,
    }));
    run.end(0)
}

/// The same run, but `kubeadm init` fails, and the user presses Ctrl-C.
pub(crate) fn failing() -> Vec<Event> {
    let mut run = Run::begun();
    run.download();
    run.etcd();
    let failed = Outcome::Failed { failure: failure() };
    run.task("node1", "kubernetes", "init_cluster", "Initialise the cluster", 4000, failed);
    let skipped = Outcome::Skipped { message: "node1 has no cluster to join".into() };
    run.task("node2", "kubernetes", "join_worker", "Join as a worker", 0, skipped);
    run.at(EventKind::Stopping { at_once: false });
    let Failure { cause, command, code, stderr, hint, .. } = failure();
    run.at(EventKind::Error(Problem {
        exit_code: 1,
        message: cause,
        hint,
        place: None,
        task: Some(FailedTask {
            host: "node1".into(),
            title: "Initialise the cluster".into(),
            command,
            code,
            stderr,
        }),
    }));
    run.end(1)
}

fn changed(line: &str) -> Outcome {
    Outcome::Changed { changes: vec![line.into()] }
}

struct Run {
    now: u64,
    events: Vec<Event>,
}

impl Run {
    fn begun() -> Self {
        let mut run = Self { now: 0, events: Vec::new() };
        run.at(EventKind::RunStarted {
            command: "create cluster".into(),
            hosts: HOSTS.map(str::to_owned).to_vec(),
            time: "2026-01-02T03:04:05Z".into(),
            dry_run: false,
        });
        run.wait(450);
        for host in &HOSTS[..3] {
            run.wait(200).at(EventKind::Probed { host: (*host).into() });
        }
        run.at(EventKind::Finding(Finding {
            severity: Severity::Adapted,
            host: Some("node3".into()),
            message: "systemd cannot manage cgroups".into(),
            hint: "containerd and kubelet use cgroupfs".into(),
        }));
        let modules =
            vec![("binaries".into(), 4), ("etcd".into(), 3), ("network".into(), 0), ("kubernetes".into(), 2)];
        run.at(EventKind::Planned { modules });
        run.at(EventKind::PlannedTask(PlannedTask {
            module: "etcd".into(),
            task: "start_etcd".into(),
            title: "Start etcd".into(),
            host: "node1".into(),
            changes: vec!["start etcd".into()],
        }));
        run
    }

    /// Binaries are downloaded, then sent to all hosts at once.
    fn download(&mut self) {
        const TOTAL: u64 = 300 << 20;
        self.start("control", "binaries", "download", "Download programs");
        let message = "the download of etcd failed: connection reset; again in 1.0 s".into();
        self.at(EventKind::Note { host: Some("control".into()), message });
        self.move_bytes(&["control"], "download", TOTAL);
        self.finish("control", "binaries", "download", "Download programs", 2000, changed("download etcd"));
        for host in &HOSTS[..3] {
            self.start(host, "binaries", "upload", "Upload programs");
        }
        self.move_bytes(&HOSTS[..3], "upload", TOTAL);
        for host in &HOSTS[..3] {
            self.finish(
                host,
                "binaries",
                "upload",
                "Upload programs",
                2000,
                changed("write /usr/local/bin/etcd"),
            );
        }
        self.at(EventKind::ModuleFinished { module: "binaries".into(), took_ms: 4000 });
    }

    fn move_bytes(&mut self, hosts: &[&str], task: &str, total: u64) {
        for step in 1..=20 {
            self.wait(100);
            for (number, host) in hosts.iter().enumerate() {
                // Each host is a little slower than the previous one.
                let done = total * step / (20 + number as u64);
                let (host, module, task) = ((*host).into(), "binaries".into(), task.into());
                self.at(EventKind::Progress { host, module, task, done, total });
            }
        }
    }

    fn etcd(&mut self) {
        self.start("node2", "etcd", "start_etcd", "Start etcd");
        self.task("node3", "etcd", "start_etcd", "Start etcd", 900, changed("start etcd"));
        let failure = Failure::new("no leader yet").transient();
        let retrying = Outcome::Retrying { failure, wait_ms: 1500 };
        self.finish("node2", "etcd", "start_etcd", "Start etcd", 1000, retrying);
        self.wait(1500);
        self.task("node2", "etcd", "start_etcd", "Start etcd", 600, changed("start etcd"));
        self.task("node1", "etcd", "start_etcd", "Start etcd", 0, Outcome::Unchanged);
        self.at(EventKind::ModuleFinished { module: "etcd".into(), took_ms: 3100 });
    }

    fn task(&mut self, host: &str, module: &str, task: &str, title: &str, took_ms: u64, outcome: Outcome) {
        self.start(host, module, task, title);
        self.wait(took_ms);
        self.finish(host, module, task, title, took_ms, outcome);
    }

    fn start(&mut self, host: &str, module: &str, task: &str, title: &str) {
        let attempt = self.attempts(host, task) + 1;
        let (host, module, task, title) = (host.into(), module.into(), task.into(), title.into());
        self.at(EventKind::TaskStarted { host, module, task, title, attempt });
    }

    /// How often a task has begun on a host.
    fn attempts(&self, host: &str, task: &str) -> u32 {
        let begins = |event: &&Event| matches!(&event.kind, EventKind::TaskStarted { host: at, task: of, .. } if at == host && of == task);
        self.events.iter().filter(begins).map(|_| 1).sum()
    }

    fn finish(&mut self, host: &str, module: &str, task: &str, title: &str, took_ms: u64, outcome: Outcome) {
        let (host, module, task, title) = (host.into(), module.into(), task.into(), title.into());
        self.at(EventKind::TaskFinished { host, module, task, title, outcome, took_ms });
    }

    fn wait(&mut self, ms: u64) -> &mut Self {
        self.now += ms;
        self
    }

    fn at(&mut self, kind: EventKind) {
        self.events.push(Event { at_ms: self.now, kind });
    }

    fn end(mut self, exit_code: u8) -> Vec<Event> {
        self.at(EventKind::RunFinished {
            ok: exit_code == 0,
            exit_code,
            changed: 12,
            round_trips: BTreeMap::from(HOSTS.map(|host| (host.to_owned(), 7))),
            log: Some("./kubekey/prod/runs/20260102-030405-create-cluster".into()),
            took_ms: self.now,
        });
        self.events
    }
}
