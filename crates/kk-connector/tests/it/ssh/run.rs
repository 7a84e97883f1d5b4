//! Scripts: streams, exit codes, files, time limits, cancellation.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use kk_connector::{Command, Connection, Error, Payload, SshConfig, SshConnection};
use tokio::sync::mpsc;

use crate::ssh::{script, sshd::Sshd};

#[tokio::test]
async fn a_script_has_two_streams_and_a_code() {
    let sshd = Sshd::start("");
    let host = sshd.connect();
    let out = host.run(script("echo out; echo err >&2; cat; exit 7")).await.unwrap();
    assert_eq!((out.code, out.stdout.as_str(), out.stderr.as_str()), (7, "out\n", "err\n"));
    let stats = host.stats();
    assert_eq!((stats.round_trips, stats.sessions), (1, 1));
}

#[tokio::test]
async fn a_script_killed_by_a_signal_has_code_128_and_its_number() {
    let sshd = Sshd::start("");
    let out = sshd.connect().run(script("kill -KILL $$")).await.unwrap();
    assert_eq!((out.code, out.stderr.as_str()), (137, ""));
}

#[tokio::test]
async fn files_lie_beside_the_script_and_go_with_it() {
    let sshd = Sshd::start("");
    let content: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let command = Command {
        files: vec![Payload { name: "a file".into(), content: content.clone().into() }],
        ..script("pwd; stat -c '%a %s' 'a file' . | head -1; cksum <'a file'; stat -c %a ..")
    };
    let out = sshd.connect().run(command).await.unwrap();
    let lines: Vec<&str> = out.stdout.lines().collect();
    assert_eq!(lines[1], "600 300000", "{out:?}");
    assert_eq!(lines[3], "700");
    assert!(!Path::new(lines[0]).exists());
}

#[tokio::test]
async fn lines_come_while_the_script_runs_and_long_output_keeps_its_end() {
    let sshd = Sshd::start("");
    let (lines, mut heard) = mpsc::channel(Command::LINES);
    let command = Command { lines: Some(lines), ..script("echo one; sleep 1; seq 1000000; printf last") };
    let host = sshd.connect();
    let first = async {
        let line = heard.recv().await;
        (line, Instant::now(), heard)
    };
    let run = async { (host.run(command).await.unwrap(), Instant::now()) };
    let rest = async {
        let (line, came, mut heard) = first.await;
        let mut count = 1;
        while let Some(line) = heard.recv().await {
            count += 1;
            assert!(count < 1_000_002 || line == "last");
            if count == 1_000_002 {
                break;
            }
        }
        (line, came, count)
    };
    let ((out, ended), (line, came, count)) = tokio::join!(run, rest);
    assert_eq!(line.as_deref(), Some("one"));
    assert!(ended - came > Duration::from_millis(900), "{:?}", ended - came);
    assert_eq!(out.stdout.len(), 4 << 20);
    assert!(out.stdout.ends_with("999999\n1000000\nlast"));
    assert_eq!(count, 1_000_002);
}

#[tokio::test]
async fn a_long_line_is_one_line() {
    let sshd = Sshd::start("");
    let (lines, mut heard) = mpsc::channel(Command::LINES);
    let text = "head -c 1000000 /dev/zero | tr '\\0' x; echo; echo end";
    sshd.connect().run(Command { lines: Some(lines), ..script(text) }).await.unwrap();
    assert_eq!(heard.recv().await.unwrap().len(), 1_000_000);
    assert_eq!(heard.recv().await.as_deref(), Some("end"));
}

#[tokio::test]
async fn both_streams_full_at_once_do_not_block_each_other() {
    let sshd = Sshd::start("");
    let out = sshd.connect().run(script("seq 300000 >&2 & seq 300000; wait")).await.unwrap();
    assert_eq!((out.stdout.len(), out.stderr.len()), (1_988_895, 1_988_895));
}

#[tokio::test]
async fn a_timeout_ends_the_process_and_its_children() {
    let sshd = Sshd::start("");
    let host = sshd.connect();
    let pids = sshd.path("pids");
    let command = Command { timeout: Duration::from_secs(1), ..script(&sleeper(&pids)) };
    let begin = Instant::now();
    let error = host.run(command).await.unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
    assert!(begin.elapsed() < Duration::from_secs(4), "{:?}", begin.elapsed());
    assert_gone(&pids, Duration::ZERO);
    assert_eq!(host.run(script("echo well")).await.unwrap().stdout, "well\n");
}

#[tokio::test]
async fn a_process_that_ignores_term_is_killed() {
    let sshd = Sshd::start("");
    let pids = sshd.path("pids");
    let text = format!("trap '' TERM; {}", sleeper(&pids));
    let command = Command { timeout: Duration::from_millis(500), ..script(&text) };
    assert!(matches!(sshd.connect().run(command).await, Err(Error::Timeout { .. })));
    assert_gone(&pids, Duration::from_secs(1));
}

#[tokio::test]
async fn a_cancelled_script_ends_and_says_so() {
    let sshd = Sshd::start("");
    let pids = sshd.path("pids");
    let command = script(&sleeper(&pids));
    let cancel = command.cancel.clone();
    let host = sshd.connect();
    let (result, ()) = tokio::join!(host.run(command), async {
        wait_for(&pids).await;
        cancel.cancel();
    });
    assert!(matches!(result, Err(Error::Cancelled { .. })));
    assert_gone(&pids, Duration::ZERO);
}

#[tokio::test]
async fn a_script_whose_caller_is_gone_ends() {
    let sshd = Sshd::start("");
    let pids = sshd.path("pids");
    let host = sshd.connect();
    tokio::select! {
        _ = host.run(script(&sleeper(&pids))) => panic!("it sleeps for a minute"),
        () = wait_for(&pids) => {}
    }
    assert_gone(&pids, Duration::from_secs(3));
}

#[tokio::test]
async fn a_cut_connection_ends_the_process_and_the_next_call_dials_again() {
    let sshd = Sshd::start("");
    let pids = sshd.path("pids");
    let host = sshd.connect();
    let (result, ()) = tokio::join!(host.run(script(&sleeper(&pids))), async {
        wait_for(&pids).await;
        sshd.cut();
    });
    assert!(matches!(result, Err(Error::Lost { .. })), "{result:?}");
    assert_gone(&pids, Duration::from_secs(4));
    assert_eq!(host.run(script("echo again")).await.unwrap().stdout, "again\n");
    // The caller does not even notice that a session died while it was idle.
    sshd.cut();
    assert_eq!(host.run(script("echo again")).await.unwrap().stdout, "again\n");
    assert_eq!(host.stats().sessions, 3);
}

#[tokio::test]
async fn calls_run_side_by_side() {
    let sshd = Sshd::start("");
    let host = sshd.connect();
    let calls = (0..6).map(|_| host.run(script("date +%s%N; sleep 1; date +%s%N")));
    let mut times = Vec::new();
    for result in futures::future::join_all(calls).await {
        let output = result.unwrap();
        assert_eq!(output.code, 0);
        let [begin, end] =
            output.stdout.lines().map(|time| time.parse::<u128>().unwrap()).collect::<Vec<_>>()[..]
        else {
            panic!("{}", output.stdout)
        };
        times.push((begin, end));
    }
    let at_once =
        |(begin, _): &(u128, u128)| times.iter().filter(|(other, end)| other <= begin && begin < end).count();
    assert!(times.iter().map(at_once).max() > Some(1), "{times:?}");
    assert_eq!(host.stats().sessions, 4);
}

#[tokio::test]
async fn what_the_login_shell_prints_is_not_the_script_s() {
    // A noisy .bashrc does the same: output before the command, on both streams.
    let sshd = Sshd::start(
        "ForceCommand echo noise; echo more >&2; eval \"$SSH_ORIGINAL_COMMAND\"\nBanner /etc/hostname",
    );
    let host = sshd.connect();
    let out = host.run(script("echo out; echo err >&2")).await.unwrap();
    assert_eq!((out.stdout.as_str(), out.stderr.as_str()), ("out\n", "err\n"));
}

#[tokio::test]
async fn processes_left_in_the_script_s_group_end_with_it() {
    let sshd = Sshd::start("");
    let pids = sshd.path("pids");
    let begin = Instant::now();
    let text = format!("sleep 60 & echo $! >{}", pids.display());
    assert_eq!(sshd.connect().run(script(&text)).await.unwrap().code, 0);
    assert!(begin.elapsed() < Duration::from_secs(4));
    assert_gone(&pids, Duration::ZERO);
}

/// A script that writes its and its child's process ids and sleeps for a minute.
pub(crate) fn sleeper(pids: &Path) -> String {
    let pids = pids.display();
    format!("sleep 60 & echo $$ $! >{pids}.new; mv {pids}.new {pids}; wait; wait; sleep 60")
}

pub(crate) async fn wait_for(file: &Path) {
    while !file.exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Asserts that none of the processes in the file is alive after `patience` at the latest.
pub(crate) fn assert_gone(pids: &Path, patience: Duration) {
    let pids = std::fs::read_to_string(pids).unwrap();
    let begin = Instant::now();
    for pid in pids.split_whitespace() {
        let alive = || {
            // A zombie, which the test machine's init may not have reaped, is dead.
            std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
        };
        while alive() {
            assert!(begin.elapsed() < patience, "process {pid} is alive");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[tokio::test]
async fn idle_sessions_are_closed_down_to_one() {
    let sshd = Sshd::start("");
    let config = SshConfig { idle: Duration::from_millis(200), ..sshd.config() };
    let host = SshConnection::new(config);
    let calls = (0..3).map(|_| host.run(script("sleep 1")));
    for result in futures::future::join_all(calls).await {
        result.unwrap();
    }
    assert_eq!(host.stats().sessions, 3);
    let began = Instant::now();
    while sshd.sessions() > 1 {
        assert!(began.elapsed() < Duration::from_secs(20), "{} sessions are left", sshd.sessions());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    host.run(script("true")).await.unwrap();
    assert_eq!(host.stats().sessions, 3, "the one that is left was used");
    host.close().await;
    while sshd.sessions() > 0 {
        assert!(began.elapsed() < Duration::from_secs(40), "closing leaves a session");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
