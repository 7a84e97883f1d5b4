//! Tests the definitions for KubeSphere 4.1.3.

use std::collections::BTreeSet;

use ks_installer::engine::desired;
use ks_installer::render::{Inputs, images_of};

use super::{KUBERNETES, named, release_of};

#[tokio::test]
#[ignore = "needs a release of KubeSphere"]
async fn the_chart_of_version_4_is_rendered_the_same_each_time() {
    let release = release_of("KS_CORE", "the chart ks-core of KubeSphere 4.1.3");
    let generated = release.generated("core");
    let spec = release
        .spec(&[("/local_registry", "r.local:5000".into()), ("/common/core/console/port", 30881.into())]);
    assert!(desired(release.payload(), &spec, KUBERNETES).refused.is_empty());
    let first = release.objects("core", &spec, &generated).await;
    assert_eq!(first, release.objects("core", &spec, &generated).await, "each rendering is another one");
    let secret = named(&first, "Secret", "ks-controller-manager-webhook-cert");
    for hook in
        first.iter().filter(|object| object["kind"].as_str().unwrap().ends_with("WebhookConfiguration"))
    {
        assert_eq!(secret["data"]["ca.crt"], hook["webhooks"][0]["clientConfig"]["caBundle"], "{hook}");
    }
    assert_eq!(named(&first, "Service", "ks-console")["spec"]["ports"][0]["nodePort"], 30881);
    assert_eq!(named(&first, "User", "admin")["spec"]["password"], generated["admin"]);
    let config = named(&first, "ConfigMap", "kubesphere-config")["data"]["kubesphere.yaml"].as_str().unwrap();
    assert!(config.contains("imageRegistry: \"r.local:5000\""), "extensions have another registry: {config}");
    let mut images = BTreeSet::new();
    for object in &first {
        images_of(object, &mut images);
    }
    images.extend(release.renderer.extra_images(&release.payload().components()["core"], &spec).unwrap());
    assert!(images.contains("r.local:5000/kubesphere/kubectl:v1.27.16"), "{images:?}");
    assert!(
        !images.is_empty() && images.iter().all(|image| image.starts_with("r.local:5000/")),
        "{images:?}"
    );
}

#[tokio::test]
#[ignore = "needs a release of KubeSphere"]
async fn the_release_that_helm_records_of_version_4_fits_into_a_secret() {
    let release = release_of("KS_CORE", "the chart ks-core of KubeSphere 4.1.3");
    let (spec, generated) = (release.spec(&[]), release.generated("core"));
    let component = &release.payload().components()["core"];
    let inputs = Inputs { spec: &spec, generated: &generated };
    let rendering = release.renderer.rendering(component, inputs).await.unwrap();
    let [recorded] = rendering.releases.as_slice() else { panic!("one release is recorded") };
    let content = recorded.content(&rendering.objects).unwrap();
    assert_eq!(content["chart"]["metadata"]["name"], "ks-core");
    let mut packed =
        flate2::read::GzEncoder::new(std::io::Cursor::new(content.to_string()), flate2::Compression::best());
    let size = std::io::copy(&mut packed, &mut std::io::sink()).unwrap() * 4 / 3;
    assert!((10_000..700_000).contains(&size), "{size} bytes, of 1 MiB at most");
    // helm would delete an object of one revision that the next manifest lacks.
    assert!(!content["manifest"].as_str().unwrap().contains("\"CustomResourceDefinition\""));
    let ours = rendering
        .objects
        .iter()
        .filter(|object| object["metadata"]["annotations"]["meta.helm.sh/release-name"] == "ks-core");
    assert!(ours.count() > 50);
}
