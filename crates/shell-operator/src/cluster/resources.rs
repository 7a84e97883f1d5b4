//! From a kind, as a hook writes it, to the resource of the API.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::future::join_all;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroup, APIResource, APIResourceList};
use kube::Client;
use kube::core::discovery::v2::{APIGroupDiscovery, APIVersionDiscovery};

use super::api;

/// How long the API server's answer about its resources is reused.
const FRESH: Duration = Duration::from_secs(5);

/// A resource of the API.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Resource {
    /// API group; empty for the core group.
    pub group: String,
    /// Version.
    pub version: String,
    /// Kind, as the API server writes it.
    pub kind: String,
    /// Name in paths.
    pub plural: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
}

impl Resource {
    /// The resource of namespaces.
    pub fn namespaces() -> Self {
        Self {
            group: String::new(),
            version: "v1".to_owned(),
            kind: "Namespace".to_owned(),
            plural: "namespaces".to_owned(),
            namespaced: false,
        }
    }

    /// `version` or `group/version`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Path of a collection: all objects of the resource, or those in a namespace.
    pub fn collection(&self, namespace: Option<&str>) -> String {
        let base = if self.group.is_empty() {
            format!("/api/{}", self.version)
        } else {
            format!("/apis/{}/{}", self.group, self.version)
        };
        match namespace.filter(|name| self.namespaced && !name.is_empty()) {
            Some(namespace) => format!("{base}/namespaces/{namespace}/{}", self.plural),
            None => format!("{base}/{}", self.plural),
        }
    }
}

/// Why a resource was not found.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// The API server does not know it (yet).
    #[error(
        "the cluster has no kind '{kind}' in '{api_version}'; {}",
        match .elsewhere {
            Some(version) => format!("it has one in '{version}'"),
            None => "if a CustomResourceDefinition is to provide it, it is not there yet".to_owned(),
        }
    )]
    Missing {
        /// Kind that was looked for.
        kind: String,
        /// Where.
        api_version: String,
        /// A version that has such a kind.
        elsewhere: Option<String>,
    },
    /// The request to the API server failed.
    #[error("{}", api::explain(.0))]
    Client(#[from] kube::Error),
}

/// Finds resources. Shared by reference.
pub struct Resources {
    client: Client,
    known: Mutex<HashMap<String, (Instant, APIResourceList)>>,
    /// All groups except the core group. Locked while the API server is queried, so that all callers share one answer.
    groups: tokio::sync::Mutex<Option<(Instant, Arc<[APIResourceList]>)>>,
}

impl Resources {
    /// Resources of the cluster that `client` talks to.
    pub fn new(client: Client) -> Self {
        Self { client, known: Mutex::default(), groups: tokio::sync::Mutex::default() }
    }

    /// The resource for a kind, plural, singular or short name in any case. Without a version, every group is searched, the core
    /// group first. In a group, the version that the API server prefers counts, among the versions that have the kind.
    pub async fn find(&self, api_version: Option<&str>, kind: &str) -> Result<Resource, FindError> {
        let missing = |api_version: &str, elsewhere| FindError::Missing {
            kind: kind.to_owned(),
            api_version: api_version.to_owned(),
            elsewhere,
        };
        if let Some(api_version) = api_version {
            let found = match self.list(api_version).await {
                Ok(list) => pick(&list, kind),
                Err(error) if api::is_not_found(&error) => None,
                Err(error) => return Err(error.into()),
            };
            return match found {
                Some(resource) => Ok(resource),
                None => Err(missing(api_version, self.elsewhere(api_version, kind).await)),
            };
        }
        // Most kinds are in the core group: one request instead of one for each group.
        if let Some(resource) = pick(&self.list("v1").await?, kind) {
            return Ok(resource);
        }
        let found = self.groups().await?.iter().find_map(|list| pick(list, kind));
        found.ok_or_else(|| missing("any API group", None))
    }

    /// A version that has the kind, preferably of the same group: old versions of a kind are removed by some release.
    async fn elsewhere(&self, api_version: &str, kind: &str) -> Option<String> {
        let groups = self.groups().await.ok()?;
        let group = api_version.split_once('/').map(|(group, _)| group);
        let found = groups.iter().filter_map(|list| pick(list, kind));
        found.max_by_key(|resource| Some(&*resource.group) == group).map(|resource| resource.api_version())
    }

    /// The resources of all groups except the core group; of each group the preferred version first.
    async fn groups(&self) -> Result<Arc<[APIResourceList]>, kube::Error> {
        let mut known = self.groups.lock().await;
        if let Some((since, lists)) = &*known
            && since.elapsed() < FRESH
        {
            return Ok(lists.clone());
        }
        // One request; API servers before 1.26 answer it with the groups only.
        let all = self.client.list_api_groups_aggregated().await?;
        let lists: Arc<[APIResourceList]> = if all.items.is_empty() {
            self.groups_one_by_one().await?.into()
        } else {
            all.items.iter().flat_map(lists_of).collect()
        };
        *known = Some((Instant::now(), lists.clone()));
        Ok(lists)
    }

    async fn groups_one_by_one(&self) -> Result<Vec<APIResourceList>, kube::Error> {
        let groups = self.client.list_api_groups().await?.groups;
        let versions: Vec<String> = groups.iter().flat_map(versions_of).collect();
        // A broken aggregated API must not hide the others.
        let lists = join_all(versions.iter().map(|version| self.list(version))).await;
        Ok(lists.into_iter().flatten().collect())
    }

    async fn list(&self, api_version: &str) -> Result<APIResourceList, kube::Error> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(api_version).cloned();
        if let Some((since, list)) = known
            && since.elapsed() < FRESH
        {
            return Ok(list);
        }
        let list = if api_version.contains('/') {
            self.client.list_api_group_resources(api_version).await?
        } else {
            self.client.list_core_api_resources(api_version).await?
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(api_version.to_owned(), (Instant::now(), list.clone()));
        Ok(list)
    }
}

/// The versions of a group, the preferred one first.
fn versions_of(group: &APIGroup) -> Vec<String> {
    let preferred = group.preferred_version.iter();
    let others = group.versions.iter().filter(|version| Some(*version) != group.preferred_version.as_ref());
    preferred.chain(others).map(|version| version.group_version.clone()).collect()
}

/// The resources of a group, version by version; the API server puts the preferred one first.
fn lists_of(group: &APIGroupDiscovery) -> Vec<APIResourceList> {
    let name = group.metadata.as_ref().and_then(|metadata| metadata.name.clone()).unwrap_or_default();
    group.versions.iter().map(|version| list_of(&name, version)).collect()
}

fn list_of(group: &str, version: &APIVersionDiscovery) -> APIResourceList {
    let resources = version.resources.iter().map(|resource| APIResource {
        name: resource.resource.clone().unwrap_or_default(),
        kind: resource.response_kind.as_ref().and_then(|kind| kind.kind.clone()).unwrap_or_default(),
        namespaced: resource.scope.as_deref() == Some("Namespaced"),
        singular_name: resource.singular_resource.clone().unwrap_or_default(),
        short_names: Some(resource.short_names.clone()),
        ..APIResource::default()
    });
    let group_version = format!("{group}/{}", version.version.as_deref().unwrap_or_default());
    APIResourceList { group_version, resources: resources.collect() }
}

fn pick(list: &APIResourceList, kind: &str) -> Option<Resource> {
    let same = |name: &str| name.eq_ignore_ascii_case(kind);
    let names = |resource: &APIResource| {
        same(&resource.kind)
            || same(&resource.name)
            || same(&resource.singular_name)
            || resource.short_names.iter().flatten().any(|name| same(name))
    };
    let resource = list.resources.iter().find(|resource| !resource.name.contains('/') && names(resource))?;
    let (group, version) = list.group_version.split_once('/').unwrap_or(("", &list.group_version));
    Some(Resource {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: resource.kind.clone(),
        plural: resource.name.clone(),
        namespaced: resource.namespaced,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_by_any_of_their_names() {
        for (kind, expected) in [
            ("CronTab", Some("crontabs")),
            ("crontab", Some("crontabs")),
            ("crontabs", Some("crontabs")),
            ("ct", Some("crontabs")),
            ("Scale", None),
            ("", None),
        ] {
            let resource = |name: &str, kind: &str| APIResource {
                name: name.into(),
                kind: kind.into(),
                namespaced: true,
                singular_name: kind.to_lowercase(),
                short_names: Some(vec!["ct".into()]),
                ..APIResource::default()
            };
            let list = APIResourceList {
                group_version: "stable.example.com/v1".into(),
                resources: vec![resource("crontabs/scale", "Scale"), resource("crontabs", "CronTab")],
            };
            assert_eq!(pick(&list, kind).map(|found| found.plural).as_deref(), expected, "{kind}");
        }
    }
}
