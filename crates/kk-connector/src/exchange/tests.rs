//! The conversation with real shells, and with a `sudo` that is strict about its input.

use std::{fs, path::Path, time::Duration};

use kk_config::Secret;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::local::ChildPipe;

/// Knows one password, asks three times like the real sudo, and records its arguments.
const SUDO: &str = r#"#!/bin/sh
echo "$@" >>"$(dirname "$0")/arguments"
ask=yes
while [ "${1#-}" != "$1" ]; do
  case $1 in -n) ask=never ;; -p) shift ;; esac
  shift
done
[ -e "$(dirname "$0")/nopasswd" ] && ask=no
[ $ask = never ] && { echo 'sudo: a password is required' >&2; exit 1; }
for try in 1 2 3; do
  [ $ask = no ] && break
  read -r line || { echo 'sudo: no password was provided' >&2; exit 1; }
  [ "$line" = s3ntinel ] && break
  echo 'Sorry, try again.' >&2
  [ $try = 3 ] && { echo 'sudo: 3 incorrect password attempts' >&2; exit 1; }
done
exec "$@"
"#;

/// A directory with the `sudo` above.
fn stub() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("sudo.text"), SUDO).unwrap();
    // Makes the user look like a user other than root.
    fs::write(dir.path().join("id.text"), "#!/bin/sh\necho 1000\n").unwrap();
    // Another process writes the executables. If this process has a file open, even only in a child that another test is about to
    // start, the file cannot be run (execve(2), ETXTBSY).
    let copy = "for name in sudo id; do cp $name.text $name; chmod 755 $name; done";
    let copied = std::process::Command::new("sh").args(["-ec", copy]).current_dir(dir.path()).status();
    assert!(copied.unwrap().success());
    dir
}

fn peer() -> Peer {
    Peer { host: "node1".into(), user: "ada".into() }
}

fn call(script: &str) -> Call {
    Call::new(script.into(), Duration::from_secs(10), CancellationToken::new())
}

/// Runs `command` with the stub on the PATH.
fn start(stub: &Path, command: &str) -> ChildPipe {
    let command = format!("PATH={}:$PATH; export PATH; {command}", stub.display());
    ChildPipe::start(&command, &mut None).unwrap()
}

fn ask(stub: &Path, password: Option<&Secret>) -> Result<Root, Failure> {
    let mut exec = |command: &str, input: &[u8]| {
        plain(&mut start(stub, command), input, Duration::from_secs(10))
            .map_err(|error| Failure::NotBegun(error.to_string()))
    };
    find_root(&mut exec, &peer(), password)
}

fn run_as(stub: &Path, root: &Root, script: &str) -> Result<Reply, Failure> {
    let mut call = call(script);
    let opening = Opening::new(root, &call, &[]).unwrap();
    let mut pipe = start(stub, &opening.command);
    drive(&mut pipe, &mut call, opening, &peer())
}

#[test]
fn the_bootstrap_runs_in_every_shell() {
    for (case, shell) in [("dash", "sh"), ("bash", "bash")] {
        println!("case {case}");
        let mut call = call("echo out; echo err >&2; kill -KILL $$");
        call.files = vec![Payload { name: "x".into(), content: Arc::new([1]) }];
        let opening = Opening::new(&Root::Already, &call, &[]).unwrap();
        let command = opening.command.replace("exec sh ", &format!("exec {shell} "));
        let reply =
            drive(&mut ChildPipe::start(&command, &mut None).unwrap(), &mut call, opening, &peer()).unwrap();
        assert_eq!(
            (reply.code, &reply.stdout[..], &reply.stderr[..]),
            (137, &b"out\n"[..], &b"err\n"[..]),
            "{case}"
        );
    }
}

#[test]
fn a_sudo_password_goes_to_standard_input_only() {
    let stub = stub();
    let password = Secret::new("s3ntinel");
    let root = ask(stub.path(), Some(&password)).unwrap();
    let reply = run_as(stub.path(), &root, "echo my-script; exit 3").unwrap();
    assert_eq!((reply.code, &reply.stdout[..]), (3, &b"my-script\n"[..]));
    let arguments = fs::read_to_string(stub.path().join("arguments")).unwrap();
    assert_eq!(arguments.lines().count(), 3, "{arguments}");
    assert!(!arguments.contains("s3ntinel") && !arguments.contains("my-script"), "{arguments}");
}

#[test]
fn a_password_that_sudo_does_not_ask_for_shifts_nothing() {
    let stub = stub();
    let root = Root::Sudo { password: Some(Secret::new("s3ntinel")), pty: false };
    fs::write(stub.path().join("nopasswd"), "").unwrap();
    assert_eq!(run_as(stub.path(), &root, "echo in").unwrap().stdout, b"in\n");
}

#[test]
fn no_right_and_a_wrong_password_are_told_apart() {
    for (case, password, why) in [
        ("none", None, "a password is required; no password is given"),
        ("wrong", Some("wrong"), "no password was provided"),
    ] {
        println!("case {case}");
        let stub = stub();
        let password = password.map(Secret::new);
        let error = ask(stub.path(), password.as_ref()).unwrap_err();
        let Failure::Final(error @ Error::Sudo { .. }) = error else { panic!("{error:?}") };
        assert!(error.to_string().contains(why), "{case}: {error}");
    }
}

#[test]
fn a_password_that_changed_meanwhile_ends_in_an_error_not_in_a_wait() {
    let stub = stub();
    let root = Root::Sudo { password: Some(Secret::new("old")), pty: false };
    let error = run_as(stub.path(), &root, "echo in").unwrap_err();
    assert!(
        matches!(&error, Failure::Final(Error::Sudo { reason, .. }) if reason.contains("incorrect")),
        "{error:?}"
    );
}

#[test]
fn a_host_that_cannot_take_the_script_is_not_a_lost_connection() {
    let mut call = call("echo in");
    let mut opening = Opening::new(&Root::Already, &call, &[]).unwrap();
    // Damage the tar stream: a host without tar, or with a full disk, fails in the same way.
    let tar = opening.prelude.len() - 2048;
    opening.prelude[tar..].fill(b'x');
    let mut pipe = ChildPipe::start(&opening.command, &mut None).unwrap();
    let error = drive(&mut pipe, &mut call, opening, &peer()).unwrap_err();
    let Failure::Final(error @ Error::Transfer { .. }) = error else { panic!("{error:?}") };
    assert!(error.to_string().contains("tar") && !error.to_string().contains("kk-"), "{error}");
}

#[test]
fn a_program_that_is_missing_is_named() {
    let bin = tempfile::tempdir().unwrap();
    for program in ["env", "head", "mkdir", "rm", "setsid", "sleep"] {
        std::os::unix::fs::symlink("/bin/true", bin.path().join(program)).unwrap();
    }
    let mut call = call("echo in");
    let mut opening = Opening::new(&Root::Already, &call, &[]).unwrap();
    let (tar, prelude) = (opening.prelude.len(), String::from_utf8_lossy(&opening.prelude).into_owned());
    assert_eq!(prelude.len(), tar, "nothing here is binary");
    let (first, rest) = prelude.split_once("\nPATH=").unwrap();
    let rest = rest.split_once('\n').unwrap().1;
    opening.prelude = format!("{first}\nPATH={}\n{rest}", bin.path().display()).into_bytes();
    let mut pipe = ChildPipe::start(&opening.command, &mut None).unwrap();
    let error = drive(&mut pipe, &mut call, opening, &peer()).unwrap_err();
    let Failure::Final(error @ Error::MissingProgram { .. }) = error else { panic!("{error:?}") };
    assert_eq!(error.to_string(), "tar is not installed on node1");
}

#[test]
fn a_script_gets_no_variable_of_the_login() {
    let stub = stub();
    let login = [
        "http_proxy",
        "HTTPS_PROXY",
        "no_proxy",
        "ALL_PROXY",
        "KUBECONFIG",
        "ETCDCTL_API",
        "CONTAINER_RUNTIME_ENDPOINT",
        "ENV",
    ];
    let exports = login.map(|name| format!("export {name}=/nonexistent; ")).concat();
    fs::write(stub.path().join("nopasswd"), "").unwrap();
    for root in [Root::Already, Root::Sudo { password: None, pty: false }] {
        let mut call = call("env; echo ~");
        let opening = Opening::new(&root, &call, &[]).unwrap();
        let mut pipe = start(stub.path(), &format!("{exports}{}", opening.command));
        let reply = drive(&mut pipe, &mut call, opening, &peer()).unwrap();
        let said = String::from_utf8(reply.stdout).unwrap();
        assert!(said.contains("PATH=/usr/local/sbin:") && said.contains("LC_ALL=C"), "{said}");
        assert!(!said.contains("nonexistent"), "{said}");
        assert!(said.lines().last().is_some_and(|home| home.starts_with('/')), "{said}");
    }
}

/// The connection of the first call is gone, but its shell does not know: nothing closes its standard input.
#[test]
fn what_a_lost_call_left_running_ends_before_the_next_begins() {
    // Where /run cannot be written, the directory is in /tmp.
    for run in ["/run/kk.", "/nonexistent/kk."] {
        println!("case {run}");
        ends_what_is_left(run);
    }
}

fn ends_what_is_left(run: &str) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let name = file.path().display();
    let first =
        call(&format!("trap 'echo ended >>{name}; exit 1' TERM; echo began >>{name}; sleep 60 & wait"));
    let opening = Opening::new(&Root::Already, &first, &[]).unwrap();
    let mut child = None;
    let mut pipe = ChildPipe::start(&opening.command, &mut child).unwrap();
    let prelude = String::from_utf8(opening.prelude.clone()).unwrap().replace("/run/kk.", run);
    let mut prelude = prelude.as_bytes();
    while !prelude.is_empty() {
        match pipe.write(prelude) {
            Ok(n) => prelude = &prelude[n..],
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
    }
    while fs::read_to_string(file.path()).unwrap() != "began\n" {
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut second = call(&format!("cat {name}"));
    let lost = ["0123456789abcdef".to_owned(), opening.nonce];
    let opening = Opening::new(&Root::Already, &second, &lost).unwrap();
    let mut next = ChildPipe::start(&opening.command, &mut None).unwrap();
    let reply = drive(&mut next, &mut second, opening, &peer()).unwrap();
    assert_eq!(String::from_utf8_lossy(&reply.stdout), "began\nended\n");
    child.unwrap().wait().unwrap();
}

#[test]
fn a_call_that_was_cancelled_before_does_not_begin() {
    let dir = tempfile::tempdir().unwrap();
    let ran = dir.path().join("ran");
    let mut call = call(&format!(": >{}; sleep 1", ran.display()));
    call.cancel.cancel();
    let opening = Opening::new(&Root::Already, &call, &[]).unwrap();
    let mut child = None;
    let mut pipe = ChildPipe::start(&opening.command, &mut child).unwrap();
    let error = drive(&mut pipe, &mut call, opening, &peer()).unwrap_err();
    assert!(matches!(error, Failure::Final(Error::Cancelled { .. })), "{error:?}");
    drop(pipe);
    child.unwrap().wait().unwrap();
    assert!(!ran.exists());
}

/// A connection may break at any byte. The host's shell then gets only the bytes before it.
#[test]
fn a_beginning_that_is_cut_short_runs_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let ran = dir.path().join("ran");
    let mut call = call(&format!(": >{}", ran.display()));
    call.files = vec![Payload { name: "x".into(), content: Arc::new([b'x'; 700]) }];
    let Opening { command, prelude, .. } = Opening::new(&Root::Already, &call, &[]).unwrap();
    // After the script only the end mark of the tar follows: two empty blocks.
    let script_ends = prelude.len() - 1024;
    for cut in (0..script_ends).step_by(61).chain((script_ends - 2048..script_ends).step_by(32)) {
        let mut shell = std::process::Command::new("sh")
            .args(["-c", &command])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // The shell may end before it has read everything.
        let _ = std::io::Write::write_all(shell.stdin.as_mut().unwrap(), &prelude[..cut]);
        shell.wait().unwrap();
        assert!(!ran.exists(), "after {cut} of {} bytes", prelude.len());
    }
}

#[test]
fn a_file_name_cannot_leave_the_directory() {
    for name in ["a/b", "..", ""] {
        let mut call = call("");
        call.files = vec![Payload { name: name.into(), content: Arc::new([]) }];
        assert!(Opening::new(&Root::Already, &call, &[]).is_err(), "{name}");
    }
}
