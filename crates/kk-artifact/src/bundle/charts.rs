//! Helm charts and Kubernetes manifests in a bundle.

use std::collections::BTreeMap;

use super::index::{BundleIndex, CHARTS, ChartPart, FilePart, MANIFESTS, ManifestPart};
use super::write::Source;
use crate::Error;
use crate::charts::{Chart, File, Identity, Kept};
use crate::oci::Blobs;

/// The charts and manifests of a bundle: their entries in the index and their files.
#[derive(Default)]
pub(super) struct Packed {
    pub(super) charts: Vec<ChartPart>,
    pub(super) manifests: Vec<ManifestPart>,
    pub(super) files: Vec<(FilePart, Source)>,
}

impl Packed {
    /// Errors: two charts with the same name and version but different content, or two files with different content from URLs
    /// that differ only in their query.
    pub(super) fn of(charts: &[Chart], files: &[File], blobs: &Blobs) -> Result<Self, Error> {
        let mut places: BTreeMap<String, &Kept> = BTreeMap::new();
        let mut packed = Self::default();
        for Chart { source, identity: Identity { name, version }, kept } in charts {
            let path = format!("{CHARTS}{name}-{version}.tgz");
            if places.insert(path.clone(), kept).is_some_and(|other| other != kept) {
                return Err(Error::Source {
                    part: format!("chart {source}"),
                    reason: format!("the bundle already contains a different chart {name} {version}"),
                    hint: "change the version of one of them, or make two bundles".to_owned(),
                });
            }
            let (name, version, source) = (name.clone(), version.clone(), source.origin());
            packed.charts.push(ChartPart { name, version, source, path });
        }
        let mut origins: BTreeMap<&str, &Kept> = BTreeMap::new();
        for File { file, kept } in files {
            let path = format!("{MANIFESTS}{}", file.name);
            places.insert(path.clone(), kept);
            // A bundle is passed on to others; a token in a query must not be.
            let (name, source) = (file.name.clone(), file.source.origin().to_owned());
            if origins.insert(file.source.origin(), kept).is_some_and(|other| other != kept) {
                return Err(Error::Source {
                    part: format!("manifest {source}"),
                    reason: "the bundle already contains a different file of this URL".to_owned(),
                    hint: "a bundle identifies files by their URLs without the part after `?`: make two \
                         bundles, or download one of them and specify its path"
                        .to_owned(),
                });
            }
            packed.manifests.push(ManifestPart { name, source, path });
        }
        for (path, Kept { sum, size }) in places {
            let file = FilePart { path, size: *size, sha256: sum.to_string() };
            packed.files.push((file, Source::File(blobs.path(sum))));
        }
        Ok(packed)
    }
}

/// Whether a path is the path of a packed chart.
pub(super) fn is_chart(path: &str) -> bool {
    path.starts_with(CHARTS)
}

/// Compares the index's entries for charts with their documents. `read` returns the identity in a chart's document.
pub(super) fn compare(
    index: &BundleIndex,
    read: impl Fn(&FilePart) -> Option<Result<Identity, String>>,
) -> Result<(), String> {
    for part in &index.charts {
        let found = index.file(&part.path).and_then(&read);
        let found = found.ok_or_else(|| format!("{} is missing", part.path))?;
        let Identity { name, version } = found.map_err(|reason| format!("{}: {reason}", part.path))?;
        if name != part.name || version != part.version {
            return Err(format!("{} is the chart {name} {version}", part.path));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use kk_config::{ManifestFile, ManifestSource};

    use super::*;

    #[test]
    fn two_files_that_only_a_query_tells_apart_do_not_fit_into_a_bundle() {
        let file = |name: &str, query: &str, content: &[u8]| File {
            file: ManifestFile {
                name: name.to_owned(),
                source: ManifestSource::Url {
                    url: format!("https://files.example/a.yaml?{query}"),
                    sha256: None,
                },
            },
            kept: Kept { sum: crate::Sha256Sum::of_bytes(content), size: content.len() as u64 },
        };
        let pack = |second: &[u8]| {
            let files = [file("a.yaml", "token=SENTINEL", b"kind: A"), file("b.yaml", "v=2", second)];
            Packed::of(&[], &files, &Blobs::new(Path::new("store")))
        };
        assert_eq!(pack(b"kind: A").unwrap().manifests.len(), 2);
        let said = pack(b"kind: B").err().unwrap().to_string();
        assert!(
            said.contains("https://files.example/a.yaml: the bundle already contains a different file"),
            "{said}"
        );
    }
}
