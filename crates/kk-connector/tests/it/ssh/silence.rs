//! A network that freezes: every wait ends, and the error names the remedy.

use std::time::{Duration, Instant};

use kk_connector::{Connection, Error, SshConfig, SshConnection};

use crate::ssh::{
    connect::try_it,
    proxy::Proxy,
    script,
    sshd::Sshd,
    transfer::{file, names, source, upload},
};

/// The shortest silence that can be distinguished from a pause.
const SILENCE: Duration = Duration::from_secs(6);

fn through(sshd: &Sshd, proxy: &Proxy) -> SshConfig {
    SshConfig { port: proxy.port, timeout: Duration::from_secs(2), silence: SILENCE, ..sshd.config() }
}

fn assert_told(error: &Error, began: Instant, limit: Duration) {
    assert!(matches!(error, Error::Unreachable { .. } | Error::Lost { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("no answer within 2 s") || text.contains("no data from it for"), "{text}");
    assert!(error.is_transient() && error.hint().is_some());
    assert!(began.elapsed() < limit, "{:?}: {text}", began.elapsed());
}

#[tokio::test]
async fn a_host_that_falls_silent_at_any_byte_of_the_log_in_is_given_up() {
    let sshd = Sshd::start("");
    let whole = Proxy::start(sshd.port, u64::MAX);
    try_it(through(&sshd, &whole)).await.unwrap();
    let tries = (0..10).map(async |tenth| {
        let proxy = Proxy::start(sshd.port, whole.carried() * tenth / 10);
        let began = Instant::now();
        let error = try_it(through(&sshd, &proxy)).await.unwrap_err();
        assert_told(&error, began, Duration::from_secs(20));
    });
    futures::future::join_all(tries).await;
}

#[tokio::test]
async fn a_script_on_a_host_that_falls_silent_is_given_up_and_a_quiet_script_is_not() {
    let sshd = Sshd::start("");
    let proxy = Proxy::start(sshd.port, u64::MAX);
    let host = SshConnection::new(through(&sshd, &proxy));
    assert_eq!(host.run(script("sleep 9; echo well")).await.unwrap().stdout, "well\n");

    let began = sshd.path("began");
    let text = format!(": >{}; sleep 15", began.display());
    let (result, ()) = tokio::join!(host.run(script(&text)), async {
        while !began.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        proxy.freeze();
    });
    let limit = SILENCE + Duration::from_secs(9);
    assert_told(&result.unwrap_err(), Instant::now().checked_sub(SILENCE).unwrap(), limit);
}

#[tokio::test]
async fn an_upload_to_a_host_that_falls_silent_is_given_up() {
    let sshd = Sshd::start("");
    let proxy = Proxy::start(sshd.port, u64::MAX);
    let (big, sum) = source(sshd.dir.path(), "big", 96);
    let far = sshd.path("far");
    let host = SshConnection::new(through(&sshd, &proxy));
    let mut frozen = Instant::now();
    let (result, ()) = tokio::join!(host.upload(upload(vec![file(&big, &far.join("big"), &sum)])), async {
        while !far.exists() || names(&far).is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        proxy.freeze();
        frozen = Instant::now();
    });
    assert_told(&result.unwrap_err(), frozen, SILENCE + Duration::from_secs(6));
}

#[tokio::test]
async fn a_host_that_is_slow_to_open_a_session_is_waited_for() {
    let sshd = Sshd::start("");
    let proxy = Proxy::start(sshd.port, u64::MAX);
    let host = SshConnection::new(SshConfig { timeout: Duration::from_secs(10), ..through(&sshd, &proxy) });
    host.run(script("echo in")).await.unwrap();
    proxy.hold_next(Duration::from_secs(4));
    host.run(script("echo in")).await.unwrap();
    assert_eq!(host.stats().sessions, 1);
}
