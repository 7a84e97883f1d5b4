//! Helm repositories: finds charts in their `index.yaml`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::archive::first_line;
use crate::{
    Address, Sha256Sum,
    version_list::{NAMED, it_has, newest_stable},
};

/// The used fields of `index.yaml` (helm's documentation, "Chart Repository Guide").
#[derive(Debug, Deserialize)]
pub(super) struct Index {
    #[serde(default)]
    entries: BTreeMap<String, Vec<Entry>>,
}

#[derive(Debug, Deserialize)]
struct Entry {
    version: String,
    #[serde(default)]
    urls: Option<Vec<String>>,
    #[serde(default)]
    digest: Option<String>,
}

impl Index {
    /// Large repositories list tens of thousands of charts.
    pub(super) fn parse(text: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(text).map_err(|_| "its index.yaml is not UTF-8".to_owned())?;
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! { max_events: 50_000_000, max_nodes: 20_000_000 },
        };
        serde_saphyr::from_str_with_options(text, options)
            .map_err(|error| format!("its index.yaml cannot be read: {}", first_line(&error.to_string())))
    }

    /// The newest version of a chart that is not a pre-release. Errors state the available names.
    pub(super) fn newest(&self, name: &str) -> Result<&str, String> {
        let entries = self.entries.get(name).filter(|entries| !entries.is_empty());
        let entries = entries.ok_or_else(|| self.without(name))?;
        newest_stable(entries.iter().map(|entry| entry.version.as_str()))
            .ok_or_else(|| "the repository has no stable version of it".to_owned())
    }

    /// The address of a chart, and its checksum if the repository contains it. Errors state the available versions or names.
    pub(super) fn find(
        &self,
        repo: &Address,
        name: &str,
        version: &str,
    ) -> Result<(Address, Option<Sha256Sum>), String> {
        let entries = self.entries.get(name).filter(|entries| !entries.is_empty());
        let entries = entries.ok_or_else(|| self.without(name))?;
        let bare = |version: &str| version.trim_start_matches('v').to_owned();
        let entry = entries.iter().find(|entry| bare(&entry.version) == bare(version));
        let entry = entry.ok_or_else(|| {
            let there: Vec<&str> = entries.iter().map(|entry| &*entry.version).collect();
            format!("the repository does not have this version{}", it_has(&there))
        })?;
        let url = entry.urls.iter().flatten().next().ok_or("the repository names no address for it")?;
        let address = repo.below(url).map_err(|reason| {
            format!("the repository names `{}` as its address: {reason}", url.escape_debug())
        })?;
        let sum = entry.digest.as_deref().filter(|digest| !digest.is_empty()).map(|digest| {
            digest.trim_start_matches("sha256:").parse::<Sha256Sum>().map_err(|_| {
                format!(
                    "the repository names `{}` as its digest, which is not a SHA-256",
                    digest.escape_debug()
                )
            })
        });
        Ok((address, sum.transpose()?))
    }

    fn without(&self, name: &str) -> String {
        let mut names: Vec<&str> = self.entries.keys().map(String::as_str).collect();
        names.retain(|known| known.contains(name) || name.contains(known) || self.entries.len() <= NAMED);
        names.truncate(NAMED);
        let names: Vec<String> = names.into_iter().map(|name| name.escape_debug().to_string()).collect();
        let more = if names.is_empty() { String::new() } else { format!("; it has {}", names.join(", ")) };
        format!("the repository does not have this chart{more}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_is_the_highest_one_that_is_stable() {
        let index = "entries:\n  app: [{version: 1.9.0}, {version: v1.10.0}, {version: 2.0.0-rc.1}, {version: new}]\n  \
            pre: [{version: 1.0.0-rc.1}]\n";
        let index = Index::parse(index.as_bytes()).unwrap();
        assert_eq!(index.newest("app"), Ok("v1.10.0"));
        assert!(index.newest("pre").unwrap_err().contains("no stable version"));
        assert!(index.newest("web").unwrap_err().contains("does not have this chart; it has app, pre"));
    }

    #[test]
    fn a_chart_is_found_wherever_the_index_says_that_it_is() {
        let sum = "ab".repeat(32);
        let index = format!(
            "apiVersion: v1\nentries:\n  app:\n  - {{version: v1.2.0, urls: [\"charts/app-1.2.0.tgz\"], digest: {sum}}}\n  \
             - {{version: 1.1.0, urls: [\"https://cdn.example/app.tgz?x=1\"], digest: \"sha256:{sum}\"}}\n  \
             - {{version: 1.0.0, urls: [\"/app.tgz\"]}}\n  - {{version: 0.9.0, urls: []}}\n  \
             - {{version: 0.8.0, urls: [\"ftp://a\"]}}\n  - {{version: 0.7.0, urls: [a], digest: 12}}\n  web: []\n"
        );
        let index = Index::parse(index.as_bytes()).unwrap();
        let repo = Address::parse("https://charts.example/stable").unwrap();
        for (version, expected, has_sum) in [
            ("1.2.0", "https://charts.example/stable/charts/app-1.2.0.tgz", true),
            ("v1.1.0", "https://cdn.example/app.tgz", true),
            ("1.0.0", "https://charts.example/app.tgz", false),
        ] {
            let (address, sum) = index.find(&repo, "app", version).unwrap();
            assert_eq!((address.to_string(), sum.is_some()), (expected.to_owned(), has_sum), "{version}");
        }
        for (name, version, reason) in [
            ("app", "1.3.0", "does not have this version; it has v1.2.0, 1.1.0, 1.0.0, 0.9.0"),
            ("apps", "1.2.0", "does not have this chart; it has app, web"),
            ("web", "1.2.0", "does not have this chart"),
            ("app", "0.9.0", "names no address"),
            ("app", "0.8.0", "`ftp://a` as its address"),
            ("app", "0.7.0", "`12` as its digest"),
        ] {
            let said = index.find(&repo, name, version).unwrap_err();
            assert!(said.contains(reason), "{name} {version}: {said}");
        }
    }
}
