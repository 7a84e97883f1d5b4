//! Commands that work on hosts, as far as they get if no host answers.

use std::{
    fs,
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Output, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use insta::assert_snapshot;
use tempfile::{TempDir, tempdir};

const SECRET: &str = "sentinel-hunter2";

fn command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kk"));
    command
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .env_remove("CI")
        .env("HOME", directory);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn kk(directory: &Path, arguments: &[&str]) -> Output {
    command(directory, arguments).output().expect("the program was built for this test")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("all output is UTF-8")
}

/// A cluster of two hosts on this machine's loopback, with these SSH ports.
fn cluster(ports: [u16; 2]) -> TempDir {
    let directory = tempdir().expect("there is a directory for temporary files");
    let host = |number: usize, port: u16| {
        format!(
            "  - {{name: node{number}, address: 127.0.0.1, internalAddress: 10.0.0.{number}, port: {port}, \
             user: root, password: {SECRET}, timeout: 2}}\n"
        )
    };
    let file = format!(
        "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {{name: prod}}\nspec:\n  hosts:\n{}{}  \
         roleGroups: {{etcd: [node1], control-plane: [node1], worker: [node2]}}\n",
        host(1, ports[0]),
        host(2, ports[1]),
    );
    fs::write(directory.path().join("cluster.yaml"), file).expect("the directory is writable");
    directory
}

/// A port without a listener: it was free a moment ago.
fn closed_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    listener.local_addr().expect("a bound socket has an address").port()
}

const COMMANDS: [&str; 2] = ["create", "delete"];

#[test]
fn without_a_terminal_consent_has_to_be_given_beforehand() {
    let directory = cluster([closed_port(), closed_port()]);
    for verb in COMMANDS {
        let output = kk(directory.path(), &[verb, "cluster", "-f", "cluster.yaml"]);
        assert_eq!(output.status.code(), Some(2), "{verb}");
        assert_snapshot!("no_consent", text(&output.stderr));
    }
}

#[test]
fn hosts_that_cannot_be_reached_are_told_in_text_and_as_events() {
    let (one, two) = (closed_port(), closed_port());
    let directory = cluster([one, two]);
    for verb in COMMANDS {
        let output = kk(directory.path(), &[verb, "cluster", "-f", "cluster.yaml", "--yes"]);
        let shown = text(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{verb}: {shown}");
        assert_eq!(text(&output.stdout), "", "{verb}");
        assert!(
            shown.contains("failed to connect to node1: ") && shown.contains("node2: "),
            "{verb}: {shown}"
        );
        assert!(
            shown.contains("refused") && shown.contains("nothing was changed on any host"),
            "{verb}: {shown}"
        );

        let output =
            kk(directory.path(), &[verb, "cluster", "-f", "cluster.yaml", "--yes", "--output", "json"]);
        let events: Vec<serde_json::Value> =
            text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(events[0]["event"], "run_started", "{verb}");
        assert_eq!(events[0]["command"], format!("{verb} cluster"));
        let errors: Vec<_> = events.iter().filter(|event| event["event"] == "error").collect();
        assert_eq!(errors.len(), 2, "{verb}: one for each host");
        assert!(
            errors.iter().all(|error| error["exit_code"] == 4 && error["hint"].is_string()),
            "{errors:?}"
        );
        assert_eq!(output.status.code(), Some(4), "{verb}");
        let last = events.last().expect("the run has events");
        assert_eq!((&last["event"], &last["exit_code"]), (&"run_finished".into(), &4.into()), "{verb}");

        // The printed output is also recorded: unchanged in the journal, as text in the log.
        let run = directory.path().join(last["log"].as_str().expect("a run has a directory"));
        assert_eq!(fs::read_to_string(run.join("journal.jsonl")).unwrap(), text(&output.stdout), "{verb}");
        let log = fs::read_to_string(run.join("kk.log")).unwrap();
        assert!(log.contains("ERROR: node1: Connect: "), "{verb}: {log}");
    }
}

#[test]
fn unchecked_host_keys_are_warned_of() {
    let directory = cluster([closed_port(), closed_port()]);
    for arguments in
        [&["create", "cluster", "-f", "cluster.yaml", "--yes"][..], &["status", "-f", "cluster.yaml"]]
    {
        for (how, warned) in [("off", true), ("accept-new", false)] {
            let output = kk(directory.path(), &[arguments, &["--host-key-checking", how]].concat());
            let shown = text(&output.stderr);
            assert_eq!(shown.contains("warning: host keys are not checked"), warned, "{how}: {shown}");
        }
    }
}

#[test]
fn events_that_cannot_be_written_are_an_error() {
    let directory = cluster([closed_port(), closed_port()]);
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let arguments = ["create", "cluster", "-f", "cluster.yaml", "--yes", "--output", "json"];
    let output = command(directory.path(), &arguments).stdout(full).output().unwrap();
    let shown = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{shown}");
    assert!(shown.contains("failed to write to standard output"), "{shown}");
}

#[test]
fn secrets_of_the_file_appear_nowhere() {
    let directory = cluster([closed_port(), closed_port()]);
    for format in ["text", "json"] {
        let arguments = ["create", "cluster", "-f", "cluster.yaml", "-y", "--debug", "--output", format];
        let output = kk(directory.path(), &arguments);
        assert!(!text(&output.stdout).contains(SECRET) && !text(&output.stderr).contains(SECRET), "{format}");
    }
    let grep =
        Command::new("grep").args(["-rl", SECRET, "."]).current_dir(directory.path()).output().unwrap();
    assert_eq!(text(&grep.stdout), "./cluster.yaml\n");
}

#[test]
fn a_bad_file_is_refused_before_any_host_is_contacted() {
    let directory = tempdir().unwrap();
    fs::write(directory.path().join("cluster.yaml"), "kind: Cluster\nspec: {hosts: []}\n").unwrap();
    for verb in COMMANDS {
        let output = kk(directory.path(), &[verb, "cluster", "-f", "cluster.yaml", "-y"]);
        assert_eq!(output.status.code(), Some(3), "{verb}: {}", text(&output.stderr));
        let output = kk(directory.path(), &[verb, "cluster", "-f", "nowhere.yaml", "-y"]);
        assert_eq!(output.status.code(), Some(3), "{verb}: {}", text(&output.stderr));
    }
}

#[test]
fn values_that_make_no_sense_are_usage_errors() {
    let cases = [
        &["--forks", "0"][..],
        &["--upload-forks", "many"],
        &["--host-key-checking", "maybe"],
        &["--output", "xml"],
        &["--container-manager", "docker"],
        &["--artifact", "x.tar.gz", "--skip-pull-images"],
        &["--templates", "/nowhere"],
    ];
    for case in cases {
        let arguments = [&["create", "cluster", "-y"][..], case].concat();
        assert_eq!(kk(Path::new("/"), &arguments).status.code(), Some(2), "{case:?}");
    }
}

/// A host that accepts a connection and sends nothing: only a signal or the time limit ends the wait for it.
struct Silent {
    listener: TcpListener,
    directory: TempDir,
}

impl Silent {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let port = listener.local_addr().expect("a bound socket has an address").port();
        let directory = cluster([port, closed_port()]);
        let file = directory.path().join("cluster.yaml");
        let patient =
            fs::read_to_string(&file).expect("it was just written").replace("timeout: 2", "timeout: 60");
        fs::write(&file, patient).expect("the directory is writable");
        Self { listener, directory }
    }

    /// Starts a create, through `env` with an option on signals, and returns when the create waits for the host.
    fn create(&self, signals: &str) -> (Child, TcpStream) {
        let mut child = Command::new("env")
            .args([signals, env!("CARGO_BIN_EXE_kk"), "create", "cluster", "-f", "cluster.yaml", "-y"])
            .current_dir(self.directory.path())
            .env("HOME", self.directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("env and the program are there");
        let Some(held) = accept(&self.listener) else {
            child.kill().expect("it is ours");
            panic!("nobody connected: {:?}", child.wait_with_output());
        };
        (child, held)
    }
}

fn send(signal: &str, child: &Child) {
    let status = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
    assert!(status.is_ok_and(|status| status.success()), "{signal} cannot be sent");
}

#[test]
fn a_signal_ends_the_wait_for_silent_hosts() {
    for signal in ["INT", "TERM", "HUP"] {
        let silent = Silent::new();
        let (child, _held) = silent.create("--default-signal");
        let began = Instant::now();
        send(signal, &child);
        let output = child.wait_with_output().unwrap();
        let shown = text(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{signal}: {shown}");
        assert!(began.elapsed() < Duration::from_secs(3), "{signal}: {:?}", began.elapsed());
        assert!(shown.contains("cancelled; nothing was changed"), "{signal}: {shown}");
    }
}

#[test]
fn nohup_is_respected() {
    let silent = Silent::new();
    let (mut child, _held) = silent.create("--ignore-signal=HUP");
    send("HUP", &child);
    sleep(Duration::from_secs(1));
    let ended = child.try_wait().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(ended, None, "the signal was heard");
}

/// Hundreds of hosts need more descriptors than the usual soft limit has.
#[test]
fn the_soft_limit_of_descriptors_is_raised_to_the_hard_one() {
    let silent = Silent::new();
    let script = "ulimit -Sn 200 && exec \"$0\" create cluster -f cluster.yaml -y";
    let mut child = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_kk")])
        .current_dir(silent.directory.path())
        .env("HOME", silent.directory.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let held = accept(&silent.listener);
    let limits = fs::read_to_string(format!("/proc/{}/limits", child.id()));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(held.is_some(), "nothing connected");
    let limits = limits.unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words[3], words[4], "soft and hard: {line}");
}

/// A run whose terminal disappears, as with a lost SSH session.
#[test]
fn a_run_ends_tidily_with_its_terminal() {
    let silent = Silent::new();
    // This shell outlives the terminal, to record how kk ended. The shell around it, the first of the terminal, does not: when it
    // ends, the kernel signals the others.
    let script = format!(
        "trap : HUP; env --default-signal=HUP '{}' create cluster -f cluster.yaml -y; echo $? >code",
        env!("CARGO_BIN_EXE_kk")
    );
    fs::write(silent.directory.path().join("script"), script).unwrap();
    // The terminal's first shell must not inherit from the tests that the signal is ignored, as below nohup.
    let mut terminal = Command::new("env")
        .args(["--default-signal=HUP", "script", "-qec", "sh script; :", "/dev/null"])
        .current_dir(silent.directory.path())
        .env("HOME", silent.directory.path())
        .env_remove("CI")
        .env("TERM", "xterm")
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let held = accept(&silent.listener);
    terminal.kill().unwrap();
    terminal.wait().unwrap();
    assert!(held.is_some(), "nobody connected");
    let code = silent.directory.path().join("code");
    let began = Instant::now();
    while !fs::read_to_string(&code).is_ok_and(|text| text.ends_with('\n')) {
        assert!(began.elapsed() < Duration::from_secs(20), "it still runs");
        sleep(Duration::from_millis(20));
    }
    assert_eq!(fs::read_to_string(code).unwrap(), "130\n");
}

#[test]
fn a_second_run_on_the_same_cluster_is_refused() {
    let silent = Silent::new();
    let (mut child, _held) = silent.create("--default-signal");
    let arguments = ["delete", "cluster", "-f", "cluster.yaml", "-y"];
    let output = kk(silent.directory.path(), &arguments);
    let shown = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{shown}");
    assert!(shown.contains(&format!("another kk works there (process {})", child.id())), "{shown}");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The first connection, if there is one within ten seconds.
fn accept(listener: &TcpListener) -> Option<TcpStream> {
    listener.set_nonblocking(true).expect("a listener can be asked without waiting");
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(10) {
        if let Ok((stream, _)) = listener.accept() {
            return Some(stream);
        }
        sleep(Duration::from_millis(20));
    }
    None
}
