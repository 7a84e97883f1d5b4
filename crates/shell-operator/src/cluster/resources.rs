//! From a kind, as a hook writes it, to the resource of the API.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::future::join_all;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIResource, APIResourceList};
use kube::Client;

use super::api;

/// How long an answer of the API server about its resources is used again.
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
    /// That of namespaces.
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
        "the cluster has no kind '{kind}' in '{api_version}'; if a CustomResourceDefinition is to provide it, it is not there yet"
    )]
    Missing {
        /// Kind that was looked for.
        kind: String,
        /// Where.
        api_version: String,
    },
    /// The API server could not be asked.
    #[error("{}", api::explain(.0))]
    Client(#[from] kube::Error),
}

/// Finds resources. Shared by reference.
pub struct Resources {
    client: Client,
    known: Mutex<HashMap<String, (Instant, APIResourceList)>>,
}

impl Resources {
    /// Resources of the cluster that `client` talks to.
    pub fn new(client: Client) -> Self {
        Self { client, known: Mutex::default() }
    }

    /// The resource for a kind, plural, singular or short name in any case; without a version in the preferred
    /// version of any group, the core group first.
    pub async fn find(&self, api_version: Option<&str>, kind: &str) -> Result<Resource, FindError> {
        let missing = || FindError::Missing {
            kind: kind.to_owned(),
            api_version: api_version.unwrap_or("any API group").to_owned(),
        };
        if let Some(api_version) = api_version {
            return match self.list(api_version).await {
                Ok(list) => pick(&list, kind).ok_or_else(missing),
                Err(error) if api::is_not_found(&error) => Err(missing()),
                Err(error) => Err(error.into()),
            };
        }
        // Most kinds are there: one question instead of one for each group.
        if let Some(resource) = pick(&self.list("v1").await?, kind) {
            return Ok(resource);
        }
        let versions = self.preferred_versions().await?;
        // A broken aggregated API must not hide the others.
        let lists = join_all(versions.iter().map(|version| self.list(version))).await;
        lists.iter().flatten().find_map(|list| pick(list, kind)).ok_or_else(missing)
    }

    /// Of all groups but the core group.
    async fn preferred_versions(&self) -> Result<Vec<String>, kube::Error> {
        let groups = self.client.list_api_groups().await?.groups;
        let preferred = |group: &k8s_openapi::apimachinery::pkg::apis::meta::v1::APIGroup| {
            let version = group.preferred_version.as_ref().or(group.versions.first());
            version.map(|version| version.group_version.clone())
        };
        Ok(groups.iter().filter_map(preferred).collect())
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
    use rstest::rstest;

    #[rstest]
    #[case("CronTab", Some("crontabs"))]
    #[case("crontab", Some("crontabs"))]
    #[case("crontabs", Some("crontabs"))]
    #[case("ct", Some("crontabs"))]
    #[case("Scale", None)]
    #[case("", None)]
    fn kinds_are_found_by_any_of_their_names(#[case] kind: &str, #[case] expected: Option<&str>) {
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
        assert_eq!(pick(&list, kind).map(|found| found.plural).as_deref(), expected);
    }
}
