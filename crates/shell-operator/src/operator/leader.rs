//! Leader election: of several replicas, only the holder of a Lease acts.
//!
//! The holder renews every 2 s, also while running hooks finish. 10 s after it sent the last good renewal it ends, and 3 s later
//! its hooks are killed. Others take over when the Lease has not changed for 15 s by their own clock, so that nothing runs twice,
//! even if the clocks of the machines differ.

use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::api::ObjectApi;

/// Seconds for which a renewal counts.
const LEASE: Duration = Duration::from_secs(15);
/// Time between renewals, and between checks of the waiting replicas.
const RENEW: Duration = Duration::from_secs(2);
/// Time after the last good renewal at which the holder gives up.
const GIVE_UP: Duration = Duration::from_secs(10);

/// Which Lease is used.
#[derive(Clone, Debug)]
pub struct LeaseName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// A replica that wants to act, or does.
pub(super) struct Election {
    api: ObjectApi,
    lease: LeaseName,
    identity: String,
}

/// The Lease as seen last, and since when it has not changed.
struct Seen {
    version: String,
    since: Instant,
}

impl Election {
    /// A replica with an identity of its own.
    pub(super) fn new(api: ObjectApi, lease: LeaseName) -> Self {
        let system = rustix::system::uname();
        let host = system.nodename().to_string_lossy();
        let identity = format!("{host}_{}_{}", std::process::id(), jiff::Timestamp::now().as_nanosecond());
        Self { api, lease, identity }
    }

    /// Waits until this replica may act, and returns since when; `None` when `stop` is cancelled before.
    pub(super) async fn acquire(&self, stop: &CancellationToken) -> Option<Instant> {
        let (mut seen, mut told) = (None, false);
        while !stop.is_cancelled() {
            let sent = Instant::now();
            match self.try_acquire(&mut seen).await {
                Ok(true) => {
                    tracing::info!(identity = self.identity, "this replica is the leader");
                    return Some(sent);
                }
                Ok(false) if told => {}
                Ok(false) => {
                    tracing::info!(identity = self.identity, "another replica is the leader, waiting");
                    told = true;
                }
                Err(error) => tracing::error!(error, "cannot take the Lease {}, trying again", self.path()),
            }
            tokio::select! {
                () = stop.cancelled() => return None,
                () = tokio::time::sleep(RENEW) => {}
            }
        }
        None
    }

    /// Renews the Lease, which was acquired at `last`, until it is lost.
    pub(super) async fn keep(&self, mut last: Instant) {
        while last.elapsed() < GIVE_UP {
            let left = || GIVE_UP.saturating_sub(last.elapsed());
            tokio::time::sleep(RENEW.min(left())).await;
            // The lifetime counts from the time of the request: the API server may have written it at once and answered late.
            let sent = Instant::now();
            match tokio::time::timeout(left(), self.renew()).await {
                Ok(Ok(true)) => last = sent,
                Ok(Ok(false)) => break,
                Ok(Err(error)) => tracing::error!(error, "cannot renew the Lease {}", self.path()),
                Err(_) => {}
            }
        }
        tracing::error!("the Lease {} is lost, this replica ends", self.path());
    }

    /// Allows the next replica to act at once. Must be called only when nothing of this replica runs any more.
    pub(super) async fn release(&self) {
        // Twice: a renewal in flight may change the Lease in between.
        for _ in 0..2 {
            let Ok(Some(mut lease)) = self.api.get(&self.path()).await else { return };
            if lease["spec"]["holderIdentity"] != self.identity.as_str() {
                return;
            }
            lease["spec"]["holderIdentity"] = "".into();
            match self.api.send(Method::PUT, &self.path(), &lease).await {
                Ok(()) => return,
                Err(error) => tracing::warn!(error, "cannot give the Lease back"),
            }
        }
    }

    async fn try_acquire(&self, seen: &mut Option<Seen>) -> Result<bool, String> {
        let Some(lease) = self.api.get(&self.path()).await? else {
            // The Lease was deleted while a replica held it, and the holder re-creates it. The holder may act until it must have
            // ended.
            if let Some(seen) = seen {
                if !seen.version.is_empty() {
                    *seen = Seen { version: String::new(), since: Instant::now() };
                }
                if seen.since.elapsed() < LEASE {
                    return Ok(false);
                }
            }
            let created = self.api.send(Method::POST, &self.collection(), &self.holding(None)).await;
            // Another replica may have been faster: then it is seen in the next round.
            return created.map(|()| true);
        };
        let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
        let version = lease["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        let unchanged = seen.as_ref().filter(|seen| seen.version == version).map(|seen| seen.since.elapsed());
        if unchanged.is_none() {
            *seen = Some(Seen { version: version.to_owned(), since: Instant::now() });
        }
        if !holder.is_empty() && unchanged.is_none_or(|time| time < LEASE) {
            return Ok(false);
        }
        self.api.send(Method::PUT, &self.path(), &self.holding(Some(&lease))).await.map(|()| true)
    }

    async fn renew(&self) -> Result<bool, String> {
        let Some(lease) = self.api.get(&self.path()).await? else {
            tracing::warn!("the Lease {} was deleted, it is made again", self.path());
            return self.api.send(Method::POST, &self.collection(), &self.holding(None)).await.map(|()| true);
        };
        if lease["spec"]["holderIdentity"] != self.identity.as_str() {
            return Ok(false);
        }
        self.api.send(Method::PUT, &self.path(), &self.holding(Some(&lease))).await.map(|()| true)
    }

    /// The Lease held by this replica; the version of the old Lease guards against a race.
    fn holding(&self, old: Option<&Value>) -> Value {
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
        let mine = old.is_some_and(|old| old["spec"]["holderIdentity"] == self.identity.as_str());
        let changes = old.and_then(|old| old["spec"]["leaseTransitions"].as_i64()).unwrap_or(0);
        let since =
            old.filter(|_| mine).map_or_else(|| now.clone().into(), |old| old["spec"]["acquireTime"].clone());
        let name = json!({ "name": self.lease.name, "namespace": self.lease.namespace });
        let mut lease = old.cloned().unwrap_or_else(
            || json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": name }),
        );
        lease["spec"] = json!({
            "holderIdentity": self.identity,
            "leaseDurationSeconds": LEASE.as_secs(),
            "acquireTime": since,
            "renewTime": now,
            "leaseTransitions": if mine { changes } else { changes + 1 },
        });
        lease
    }

    fn collection(&self) -> String {
        format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.lease.namespace)
    }

    fn path(&self) -> String {
        format!("{}/{}", self.collection(), self.lease.name)
    }
}
