//! Records releases in helm's format, so that users of helm see the installed releases and can continue with them.
//!
//! A revision is a Secret (`pkg/storage/driver/secrets.go` of helm). Its labels contain name, number and status, and `release`
//! contains JSON, compressed and base64-encoded. From these records, helm decides what an upgrade has to change and whether
//! another operation is running.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::inventory::{Inventory, ReleaseName};
use super::packed::{pack, unpack};
use super::{Engine, Failure, Reason};
use crate::api::Id;
use crate::canonical::canonical;
use crate::payload::Component;
use crate::render::Release;

/// Number of revisions to keep, as in helm.
const HISTORY: usize = 10;
/// Annotation of revisions of ks-installer: digest of their content. A revision that helm wrote does not have it.
const SUM: &str = "installer.kubesphere.io/sum";

/// A revision that is being installed.
pub(super) struct Revision {
    id: Id,
    content: Value,
    /// Earlier revisions.
    older: Vec<Value>,
}

impl Engine {
    /// Begins a revision for each release whose recorded content differs from the wanted content.
    pub(super) async fn open_releases(
        &self,
        component: &Component,
        inventory: &mut Inventory,
        releases: &[Release],
        objects: &[Value],
    ) -> Result<Vec<Revision>, Failure> {
        let names = releases.iter().map(name_of);
        let new: Vec<ReleaseName> = names.filter(|name| !inventory.releases.contains(name)).collect();
        if !new.is_empty() {
            inventory.releases.extend(new);
            self.inventories.save(&component.name, inventory.clone()).await?;
        }
        let mut revisions = Vec::new();
        for release in releases {
            revisions.extend(self.open_release(release, objects).await?);
        }
        Ok(revisions)
    }

    async fn open_release(&self, release: &Release, objects: &[Value]) -> Result<Option<Revision>, Failure> {
        let broken = |why| Failure::new(Reason::RenderFailed, format!("release {}: {why}", release.name));
        let content = release.content(objects).map_err(broken)?;
        let sum = kk_util::sha256(canonical(&content).to_string());
        let mut older = self.revisions(&name_of(release)).await?;
        let newest = older.last().cloned().unwrap_or_default();
        let (status, is_ours) = (status(&newest), newest["metadata"]["annotations"][SUM].is_string());
        if status == "deployed" && newest["metadata"]["annotations"][SUM] == sum.as_str() {
            return Ok(None);
        }
        if status.starts_with("pending-") && !is_ours {
            let hint = "wait until helm is done; if no helm is running, delete this Secret";
            let message = format!("{} says that helm is at work ({status})\nhint: {hint}", Id::of(&newest));
            return Err(Failure::new(Reason::OwnedByAnother, message));
        }
        // An incomplete revision is retried under the same number. Otherwise failures would remove the deployed revision from the
        // history.
        let again = is_ours && status != "deployed" && status != "superseded";
        let version = number(&newest) + u64::from(!again);
        if again {
            older.pop();
        }
        let now = now()?;
        let first = decode(&newest).ok().map(|mut body| body["info"]["first_deployed"].take());
        let first = first.filter(Value::is_string).unwrap_or_else(|| now.clone().into());
        let status = if older.is_empty() { "pending-install" } else { "pending-upgrade" };
        let mut content = content;
        content["version"] = version.into();
        content["info"] = json!({
            "first_deployed": first,
            "last_deployed": now,
            "description": "ks-installer is at work",
            "status": status,
        });
        let name = format!("sh.helm.release.v1.{}.v{version}", release.name);
        let id = Id::new("v1", "Secret", &release.namespace, &name);
        if again {
            self.rewrite(&id, &content, Some(&sum)).await?;
        } else {
            let version = version.to_string();
            let labels =
                json!({ "name": release.name, "owner": "helm", "status": status, "version": version });
            let secret = json!({
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {
                    "name": name, "namespace": release.namespace, "labels": labels, "annotations": { SUM: sum },
                },
                "type": "helm.sh/release.v1",
                "data": { "release": encode(&content)? },
            });
            self.api.create(&secret).await.map_err(Failure::at(&id))?;
        }
        Ok(Some(Revision { id, content, older }))
    }

    /// Marks these revisions as deployed and the earlier ones as superseded.
    pub(super) async fn close_releases(&self, revisions: &[Revision]) -> Result<(), Failure> {
        for revision in revisions {
            for old in revision.older.iter().filter(|old| status(old) == "deployed") {
                let id = Id::of(old);
                let mut content = decode(old).map_err(|why| broken(&id, &why))?;
                content["info"]["status"] = "superseded".into();
                self.rewrite(&id, &content, None).await?;
            }
            let mut content = revision.content.clone();
            let done = if revision.older.is_empty() { "Install complete" } else { "Upgrade complete" };
            content["info"]["status"] = "deployed".into();
            content["info"]["description"] = done.into();
            self.rewrite(&revision.id, &content, None).await?;
            let too_many = (revision.older.len() + 1).saturating_sub(HISTORY);
            for old in revision.older.iter().take(too_many) {
                self.delete_seen(old).await?;
            }
        }
        Ok(())
    }

    /// Marks these revisions as failed, so that users of helm can continue from there.
    pub(super) async fn fail_releases(&self, revisions: &[Revision], failure: &Failure) {
        for revision in revisions {
            let mut content = revision.content.clone();
            content["info"]["status"] = "failed".into();
            content["info"]["description"] = failure.message.clone().into();
            if let Err(error) = self.rewrite(&revision.id, &content, None).await {
                tracing::warn!("the release could not be recorded as failed: {error}");
            }
        }
    }

    /// Removes the records of releases of an inventory that are no longer wanted.
    pub(super) async fn forget_releases(
        &self,
        inventory: &mut Inventory,
        wanted: &[Release],
    ) -> Result<(), Failure> {
        let wanted: Vec<ReleaseName> = wanted.iter().map(name_of).collect();
        for release in inventory.releases.iter().filter(|name| !wanted.contains(name)) {
            for revision in self.revisions(release).await? {
                self.delete_seen(&revision).await?;
            }
        }
        inventory.releases.retain(|name| wanted.contains(name));
        Ok(())
    }

    /// All revisions of a release, also those that helm wrote, the newest last.
    async fn revisions(&self, of: &ReleaseName) -> Result<Vec<Value>, Failure> {
        let secrets = Id::new("v1", "Secret", &of.namespace, "");
        let query = format!("labelSelector=owner=helm,name={}", of.name);
        let what = format!("cannot read the revisions of the release {}", of.name);
        let mut found = self.api.list(&secrets, &query).await.map_err(Failure::at(what))?;
        found.sort_by_key(number);
        Ok(found)
    }

    async fn rewrite(&self, id: &Id, content: &Value, sum: Option<&str>) -> Result<(), Failure> {
        let mut change = json!({
            "metadata": { "labels": { "status": content["info"]["status"] } },
            "data": { "release": encode(content)? },
        });
        if let Some(sum) = sum {
            change["metadata"]["annotations"] = json!({ SUM: sum });
        }
        self.api.merge(id, "", &change).await.map(drop).map_err(Failure::at(id))
    }

    async fn delete_seen(&self, seen: &Value) -> Result<(), Failure> {
        let (id, uid) = (Id::of(seen), seen["metadata"]["uid"].as_str().unwrap_or_default());
        self.api.delete(&id, uid).await.map(drop).map_err(Failure::at(&id))
    }
}

fn name_of(release: &Release) -> ReleaseName {
    ReleaseName { namespace: release.namespace.clone(), name: release.name.clone() }
}

fn status(revision: &Value) -> &str {
    revision["metadata"]["labels"]["status"].as_str().unwrap_or_default()
}

fn number(revision: &Value) -> u64 {
    let version = revision["metadata"]["labels"]["version"].as_str();
    version.and_then(|version| version.parse().ok()).unwrap_or_default()
}

fn now() -> Result<String, Failure> {
    let now = OffsetDateTime::now_utc().format(&Rfc3339);
    now.map_err(|error| Failure::new(Reason::RenderFailed, error.to_string()))
}

fn broken(id: &Id, why: &str) -> Failure {
    let hint = "no helm can read it either: delete it";
    Failure::new(Reason::Refused, format!("{id} is not a record of helm: {why}\nhint: {hint}"))
}

/// Encodes a record as in `data` of the Secret, where all values are base64-encoded once more.
fn encode(content: &Value) -> Result<String, Failure> {
    Ok(STANDARD.encode(pack(content)?))
}

fn decode(revision: &Value) -> Result<Value, String> {
    let text = revision["data"]["release"].as_str().ok_or("it has no release")?;
    unpack(&STANDARD.decode(text).map_err(|error| error.to_string())?)
}
