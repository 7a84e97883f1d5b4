//! `sbom.spdx.json`: the binaries, images, packages, charts and manifests of a bundle as an SPDX document, for scanners and
//! auditors.
//!
//! Fields: SPDX specification 2.3, JSON. Package URLs: purl-spec, types `oci`, `generic` and `deb`.

use kk_config::ImageName;
use serde_json::{Value, json};

use super::{BundleIndex, ChartPart, ImagePart, ManifestPart, PackagePart, ProgramPart};

/// Its path in the bundle.
pub(super) const NAME: &str = "sbom.spdx.json";
/// The field is mandatory, and the same content must result in the same bytes.
const CREATED: &str = "1970-01-01T00:00:00Z";

/// The document of a bundle. The index must contain the files of all its parts.
pub(super) fn document(index: &BundleIndex) -> String {
    let name = index.name.as_str();
    let sum = |path: &str| index.file(path).map(|file| &*file.sha256);
    let programs = index.programs.iter().filter_map(|part| Some(program(part, sum(&part.path)?)));
    let of_systems = index.packages.iter().filter_map(|part| Some(package(part, sum(&part.path)?)));
    let charts = index.charts.iter().filter_map(|part| Some(chart(part, sum(&part.path)?)));
    let manifests = index.manifests.iter().filter_map(|part| Some(manifest(part, sum(&part.path)?)));
    let images = index.images.iter().map(image);
    let mut packages: Vec<Value> =
        programs.chain(images).chain(of_systems).chain(charts).chain(manifests).collect();
    let mut described = Vec::new();
    for (number, package) in packages.iter_mut().enumerate() {
        let id = format!("SPDXRef-Package-{}", number + 1);
        described.push(json!({
            "spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": id,
        }));
        package["SPDXID"] = json!(id);
        package["downloadLocation"] = json!("NOASSERTION");
        package["filesAnalyzed"] = json!(false);
    }
    // Two bundles with the same content are the same document.
    let unique = kk_util::sha256(json!([name, packages]).to_string());
    let document = json!({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": if name.is_empty() { "kk-bundle" } else { name },
        "documentNamespace": format!("https://spdx.org/spdxdocs/kk-bundle-{unique}"),
        "creationInfo": {
            "created": CREATED,
            "creators": [concat!("Tool: kk-", env!("CARGO_PKG_VERSION"))],
        },
        "packages": packages,
        "relationships": described,
    });
    format!("{document:#}\n")
}

fn program(part: &ProgramPart, sha256: &str) -> Value {
    let ProgramPart { name, version, arch, path } = part;
    let url = format!("pkg:generic/{name}@{}?arch={arch}", escape(version));
    of_file(name, path, "APPLICATION", sha256, &url, Some(version))
}

fn package(part: &PackagePart, sha256: &str) -> Value {
    let PackagePart { system, system_version, arch, name, version, path, .. } = part;
    let kind = if path.strip_suffix(".rpm").is_some() { "rpm" } else { "deb" };
    let version_in_url = escape(version);
    let url =
        format!("pkg:{kind}/{system}/{name}@{version_in_url}?arch={arch}&distro={system}-{system_version}");
    of_file(name, path, "INSTALL", sha256, &url, Some(version))
}

fn chart(part: &ChartPart, sha256: &str) -> Value {
    let ChartPart { name, version, source, path } = part;
    let url = format!("pkg:generic/{name}@{}{}", escape(version), from(source));
    of_file(name, path, "APPLICATION", sha256, &url, Some(version))
}

fn manifest(part: &ManifestPart, sha256: &str) -> Value {
    let ManifestPart { name, source, path } = part;
    of_file(name, path, "FILE", sha256, &format!("pkg:generic/{}{}", escape(name), from(source)), None)
}

/// The entry of a part that is one file of the bundle.
fn of_file(
    name: &str,
    path: &str,
    purpose: &str,
    sha256: &str,
    url: &str,
    version: Option<&String>,
) -> Value {
    let mut package = json!({
        "name": name,
        "packageFileName": path,
        "primaryPackagePurpose": purpose,
        "checksums": [{"algorithm": "SHA256", "checksumValue": sha256}],
        "externalRefs": [purl(url)],
    });
    if let Some(version) = version {
        package["versionInfo"] = json!(version);
    }
    package
}

/// The part of a package URL that specifies the download location; a local path means nothing on other machines.
fn from(source: &str) -> String {
    if source.contains("://") { format!("?download_url={}", escape(source)) } else { String::new() }
}

fn image(part: &ImagePart) -> Value {
    let mut package = json!({"name": part.name, "primaryPackagePurpose": "CONTAINER"});
    package["versionInfo"] = json!(part.digest);
    if let Some(digits) = part.digest.strip_prefix("sha256:") {
        package["checksums"] = json!([{"algorithm": "SHA256", "checksumValue": digits}]);
    }
    if let Ok(name) = part.name.parse::<ImageName>() {
        let repository = name.repository();
        let last = repository.rsplit('/').next().unwrap_or(&repository);
        let tag = name.tag.as_ref().map_or_else(String::new, |tag| format!("&tag={tag}"));
        let url =
            format!("pkg:oci/{last}@{}?repository_url={}{tag}", escape(&part.digest), escape(&repository));
        package["externalRefs"] = json!([purl(&url)]);
        if let Some(tag) = name.tag {
            package["versionInfo"] = json!(tag);
        }
    }
    package
}

fn purl(locator: &str) -> Value {
    json!({"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": locator})
}

/// Escapes characters that have a special meaning in a package URL.
fn escape(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let one = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::super::FilePart;
    use super::*;

    #[test]
    fn every_part_is_a_package_with_its_sum_and_url() {
        let program = ProgramPart {
            name: "kubeadm".into(),
            version: "1.36.0".into(),
            arch: "arm64".into(),
            path: "programs/kubeadm/v1.36.0/arm64/kubeadm".into(),
        };
        let file = FilePart { path: program.path.clone(), size: 3, sha256: "ab".repeat(32) };
        let image = ImagePart {
            name: "registry.k8s.io/coredns/coredns:v1.12.0".into(),
            digest: format!("sha256:{}", "cd".repeat(32)),
            media_type: "application/vnd.oci.image.index.v1+json".into(),
            platforms: Vec::new(),
        };
        let package = PackagePart {
            system: "debian".into(),
            system_version: "12".into(),
            arch: "amd64".into(),
            name: "less".into(),
            version: "2:590+1".into(),
            provides: Vec::new(),
            path: program.path.clone(),
        };
        let (source, path) = ("https://charts.example/a?b".to_owned(), file.path.clone());
        let chart = ChartPart { name: "app".into(), version: "1.2.3+4".into(), source, path };
        let index = BundleIndex {
            format: 3,
            name: "prod".into(),
            programs: vec![program],
            images: vec![image],
            packages: vec![package],
            charts: vec![chart],
            manifests: Vec::new(),
            files: vec![file].into(),
        };
        let text = document(&index);
        let document: Value = serde_json::from_str(&text).unwrap();
        let packages = document["packages"].as_array().unwrap();
        let seen: Vec<[&str; 4]> = packages
            .iter()
            .map(|package| {
                let field = |pointer: &str| package.pointer(pointer).unwrap().as_str().unwrap();
                let url = field("/externalRefs/0/referenceLocator");
                [field("/SPDXID"), field("/versionInfo"), field("/checksums/0/checksumValue"), url]
            })
            .collect();
        let (ab, cd) = ("ab".repeat(32), "cd".repeat(32));
        let url = format!(
            "pkg:oci/coredns@sha256%3A{cd}?repository_url=registry.k8s.io%2Fcoredns%2Fcoredns&tag=v1.12.0"
        );
        assert_eq!(
            seen,
            [
                ["SPDXRef-Package-1", "1.36.0", &ab, "pkg:generic/kubeadm@1.36.0?arch=arm64"],
                ["SPDXRef-Package-2", "v1.12.0", &cd, &url],
                [
                    "SPDXRef-Package-3",
                    "2:590+1",
                    &ab,
                    "pkg:deb/debian/less@2%3A590%2B1?arch=amd64&distro=debian-12"
                ],
                [
                    "SPDXRef-Package-4",
                    "1.2.3+4",
                    &ab,
                    "pkg:generic/app@1.2.3%2B4?download_url=https%3A%2F%2Fcharts.example%2Fa%3Fb"
                ],
            ]
        );
        assert_eq!(document["relationships"].as_array().unwrap().len(), 4);
    }
}
