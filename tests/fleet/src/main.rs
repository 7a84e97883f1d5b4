//! The bench `fleet`: `kk create cluster` against hundreds of simulated hosts in this process, and once more.
//!
//! What it shows is the cost of kk itself: time beside that of ten hosts, processor time, memory, descriptors. The hosts
//! speak SSH and answer as real ones do ([`answer`], [`disk`], [`programs`]); they keep what a create does to them, so that
//! a second create has nothing to do.
//!
//! Simulated hosts use the same processors as kk, which real ones do not. So their processor time is measured, too: no
//! run can be shorter than both together on the processors that there are (`bound`).

mod answer;
mod cluster;
mod disk;
mod exchange;
mod host;
mod mirror;
mod programs;
mod server;
mod shell;

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    sync::{Arc, Mutex},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use kk_test_common::{empty, events::Events, figure::Figure, line};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpListener;

/// The version of the simulated cluster: the default of kk, without its `v`.
const KUBERNETES: &str = kk_config::DEFAULT_KUBERNETES_VERSION.split_at(1).1;
/// The number of hosts whose time is the critical path; it is measured in every run.
const SMALLEST: u16 = 10;
/// Milliseconds of a round trip.
const LATENCIES: [u64; 2] = [1, 20];
/// The port of all hosts.
const PORT: u16 = 2222;
/// A run that takes longer hangs.
const LIMIT: Duration = Duration::from_mins(15);
/// Goals: resident memory in MiB, and time beside that of ten hosts.
const MEMORY: f64 = 300.0;
const STRETCH: f64 = 1.2;
/// Goal for `kk status`, in seconds.
const STATUS: f64 = 3.0;

/// Runs kk against hundreds of simulated hosts and prints a line a figure. Needs neither root nor the lab.
#[derive(Debug, Parser)]
#[command(name = "kk-fleet", version)]
struct Cli {
    /// The kk to measure
    #[arg(long, value_name = "FILE")]
    kk: PathBuf,
    /// Where each run leaves what it wrote, in one directory for each number of hosts
    #[arg(long, value_name = "DIR")]
    artefacts: PathBuf,
    /// Numbers of simulated hosts; 10 are always measured first
    #[arg(long, value_delimiter = ',', value_name = "NUMBERS", default_values_t = [10, 300, 1000])]
    hosts: Vec<u16>,
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            line(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Whether every goal is reached.
fn run(cli: &Cli) -> Result<bool> {
    let kk = fs::canonicalize(&cli.kk).with_context(|| format!("there is no {}", cli.kk.display()))?;
    fs::create_dir_all(&cli.artefacts)
        .with_context(|| format!("cannot create {}", cli.artefacts.display()))?;
    let artefacts = fs::canonicalize(&cli.artefacts)?;
    raise_descriptors()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut sizes = cli.hosts.clone();
    if sizes.first() != Some(&SMALLEST) {
        sizes.insert(0, SMALLEST);
    }
    let mut figures: Vec<Figure> = Vec::new();
    for latency in LATENCIES {
        let mut path = None;
        for &hosts in &sizes {
            let dir = artefacts.join(format!("fleet-{hosts}-{latency}ms"));
            empty(&dir)?;
            let fleet = runtime.block_on(Fleet::start(&dir, hosts, Duration::from_millis(latency)))?;
            let create = fleet.kk(&kk, "create")?;
            let again = fleet.kk(&kk, "again")?;
            let status = fleet.kk(&kk, "status")?;
            fleet.stop();
            let critical = *path.get_or_insert(create.seconds);
            figures.extend(figures_of(hosts, latency, critical, [&create, &again, &status]));
        }
    }
    for figure in &figures {
        line(&figure.line());
    }
    Ok(figures.iter().all(Figure::is_reached))
}

fn figures_of(
    hosts: u16,
    latency: u64,
    critical: f64,
    [create, again, status]: [&Measured; 3],
) -> Vec<Figure> {
    let name = |what: &str| format!("fleet_{hosts}_{latency}ms_{what}");
    let bound = (create.kk + create.hosts) / cores();
    let beside = format!(
        "10_hosts:{critical:.2},bound:{bound:.2},kk_core_s:{:.2},hosts_core_s:{:.2},load:{:.1}",
        create.kk, create.hosts, create.load
    );
    let per_host = |measured: &Measured| measured.kk * 1000.0 / f64::from(hosts);
    let figure =
        |name, value, unit, beside: &str, goal| Figure { name, value, unit, beside: beside.to_owned(), goal };
    vec![
        figure(name("create"), create.seconds, "s", &beside, Some(critical.max(bound) * STRETCH)),
        figure(name("create_cpu"), per_host(create), "ms_per_host", "-", None),
        figure(name("memory"), create.memory_mib, "MiB", "-", Some(MEMORY)),
        figure(name("descriptors"), create.descriptors, "at_most", "-", None),
        figure(
            name("again"),
            again.seconds,
            "s",
            &format!("hosts_core_s:{:.2},load:{:.1}", again.hosts, again.load),
            None,
        ),
        figure(name("again_cpu"), per_host(again), "ms_per_host", "-", None),
        figure(name("again_memory"), again.memory_mib, "MiB", "-", Some(MEMORY)),
        // The goal is for up to 300 hosts.
        figure(
            name("status"),
            status.seconds,
            "s",
            &format!("kk_core_s:{:.2},hosts_core_s:{:.2}", status.kk, status.hosts),
            (hosts <= 300).then_some(STATUS),
        ),
    ]
}

/// Each session takes a descriptor here, and one of kk's.
fn raise_descriptors() -> Result<()> {
    let hard = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: hard, maximum: hard }).context("cannot raise RLIMIT_NOFILE")
}

/// Simulated hosts that listen, and the Cluster file that names them.
struct Fleet {
    dir: PathBuf,
    servers: Vec<tokio::task::JoinHandle<()>>,
}

/// What a run of kk took.
struct Measured {
    seconds: f64,
    /// Seconds of a processor: kk's, and those of the simulated hosts.
    kk: f64,
    hosts: f64,
    /// The peak of resident memory.
    memory_mib: f64,
    /// Most open descriptors.
    descriptors: f64,
    /// The machine's load average over the last minute, at the end.
    load: f64,
}

impl Fleet {
    async fn start(dir: &Path, count: u16, latency: Duration) -> Result<Self> {
        let mirror = mirror::start(dir).await?;
        let cluster = Arc::new(Mutex::new(cluster::Cluster::new(&format!("v{KUBERNETES}"))));
        let disk = Arc::new(disk::Disk::new(&dir.join("disk"))?);
        let (config, mut servers, mut names) = (server::config()?, Vec::new(), BTreeMap::new());
        for number in 0..count {
            let [_, _, high, low] = u32::from(number + 1).to_be_bytes();
            let internal = Ipv4Addr::new(10, 99, high, low);
            let listener = TcpListener::bind((Ipv4Addr::new(127, 99, high, low), PORT)).await?;
            let name = format!("node{:04}", number + 1);
            let host =
                host::Host::new(name.clone(), internal.to_string(), Arc::clone(&cluster), Arc::clone(&disk));
            names.insert(name, (listener.local_addr()?.ip(), internal));
            let host = Arc::new(Mutex::new(host));
            servers.push(tokio::spawn(server::serve(listener, Arc::clone(&config), host, latency)));
        }
        let list: Vec<&str> = names.keys().map(String::as_str).collect();
        let (control, workers) = list.split_at(3.min(list.len() - 1));
        let mut text =
            "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {name: fleet}\nspec:\n  hosts:\n".to_owned();
        for (name, (address, internal)) in &names {
            writeln!(
                text,
                "  - {{name: {name}, address: {address}, internalAddress: {internal}, port: {PORT}, user: root, password: x}}"
            )?;
        }
        write!(
            text,
            "  roleGroups:\n    etcd: [{0}]\n    control-plane: [{0}]\n    worker: [{1}]\n  \
             controlPlaneEndpoint: {{domain: lb.kubesphere.local, address: \"\", port: 6443}}\n  \
             kubernetes: {{version: v{KUBERNETES}, proxyMode: iptables}}\n  network: {{plugin: flannel, kubePodsCIDR: 10.128.0.0/12}}\n  \
             download: {{mirror: \"{mirror}\", catalogue: {2}}}\n  components: {3}\n",
            control.join(", "),
            workers.join(", "),
            dir.join("catalogue.yaml").display(),
            mirror::COMPONENTS,
        )?;
        fs::write(dir.join("cluster.yaml"), text)?;
        fs::create_dir_all(dir.join("home"))?;
        Ok(Self { dir: dir.to_owned(), servers })
    }

    fn stop(self) {
        for server in self.servers {
            server.abort();
        }
    }

    /// Runs `kk create cluster`, for the first time or again, or `kk status`.
    fn kk(&self, kk: &Path, round: &str) -> Result<Measured> {
        let words: &[&str] = match round {
            "status" => &["status", "--output", "json", "-f"],
            _ => &["create", "cluster", "-y", "--output", "json", "-f"],
        };
        let output = self.dir.join(format!("{round}.jsonl"));
        let errors = self.dir.join(format!("{round}.err"));
        let hosts_before = processor_time("self")?;
        let began = Instant::now();
        let mut child = Command::new(kk)
            .args(words)
            .arg(self.dir.join("cluster.yaml"))
            .arg("--workdir")
            .arg(self.dir.join("kubekey"))
            .env("HOME", self.dir.join("home"))
            .stdin(Stdio::null())
            .stdout(fs::File::create(&output)?)
            .stderr(fs::File::create(&errors)?)
            .spawn()
            .with_context(|| format!("cannot start {}", kk.display()))?;
        let (memory_mib, descriptors, kk) = watch(&mut child, began)?;
        let seconds = began.elapsed().as_secs_f64();
        let code = child.wait()?.code();
        // kk is a child that has ended.
        let hosts = processor_time("self")? - hosts_before - kk;
        let events = fs::read_to_string(&output)?;
        ensure!(code == Some(0), "kk ended with {code:?}; see {} and {}", output.display(), errors.display());
        if round == "again" {
            let changes = Events::parse(&events).changes();
            ensure!(changes.is_empty(), "the second create changed: {}", changes[0]);
        }
        let load = fs::read_to_string("/proc/loadavg")?;
        let load = load.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or_default();
        let measured = Measured { seconds, kk, hosts, memory_mib, descriptors, load };
        line(&format!(
            "{}: {round} {seconds:.2} s, kk {kk:.2} core-seconds, hosts {hosts:.2}, {memory_mib:.0} MiB, {descriptors} descriptors",
            self.dir.display()
        ));
        Ok(measured)
    }
}

/// The peaks of memory and of descriptors of a process, and its processor time, when it has ended.
fn watch(child: &mut Child, began: Instant) -> Result<(f64, f64, f64)> {
    let proc = PathBuf::from(format!("/proc/{}", child.id()));
    let (mut memory, mut descriptors, mut used) = (0.0_f64, 0, 0.0);
    while child.try_wait()?.is_none() {
        if began.elapsed() > LIMIT {
            child.kill()?;
        }
        // Both are gone when it ends in between.
        let status = fs::read_to_string(proc.join("status")).unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next());
        memory = memory.max(peak.and_then(|kib| kib.parse().ok()).unwrap_or_default());
        used = processor_time(&child.id().to_string()).unwrap_or(used);
        descriptors = descriptors.max(fs::read_dir(proc.join("fd")).map_or(0, Iterator::count));
        sleep(Duration::from_millis(20));
    }
    Ok((memory / 1024.0, f64::from(u32::try_from(descriptors)?), used))
}

/// Processors of this machine.
fn cores() -> f64 {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    f64::from(u32::try_from(cores).unwrap_or(1))
}

/// Seconds of a processor that a process has used, with those of its children that have ended (`proc_pid_stat(5)`).
fn processor_time(process: &str) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    let fields = stat.rsplit_once(") ").context("a name stands in brackets")?.1;
    // utime, stime, cutime and cstime, in ticks of a hundredth of a second.
    let ticks: Result<Vec<f64>, _> = fields.split(' ').skip(11).take(4).map(str::parse).collect();
    Ok(ticks?.iter().sum::<f64>() / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_beyond_its_goal_falls_short() {
        let measured = |seconds| Measured {
            seconds,
            kk: 6.0,
            hosts: 2.0,
            memory_mib: 100.0,
            descriptors: 1.0,
            load: 0.5,
        };
        let figures = figures_of(300, 1, 10.0, [&measured(12.5), &measured(1.0), &measured(3.5)]);
        let short: Vec<&str> =
            figures.iter().filter(|figure| !figure.is_reached()).map(|figure| figure.name.as_str()).collect();
        assert_eq!(short, ["fleet_300_1ms_create", "fleet_300_1ms_status"]);
    }
}
