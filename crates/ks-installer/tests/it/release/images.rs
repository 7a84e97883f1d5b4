//! Tests that every image of a release is pulled from the configured registry.

use std::collections::BTreeSet;

use ks_installer::engine::desired;
use ks_installer::render::images_of;
use serde_json::Value;

use super::{KUBERNETES, everything, release};

/// Texts that look like an image, also in arguments and configuration: `NAMESPACE/NAME:VERSION`, with or without a registry.
fn images_in_texts(text: &str) -> Vec<String> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "._-/:@".contains(letter);
    let words = text.replace("\\n", " ").replace("\\t", " ");
    let is_image = |word: &&str| {
        let Some((name, tag)) = word.rsplit_once(':') else { return false };
        let version = tag.strip_prefix('v').unwrap_or(tag);
        let is_version = version.starts_with(|first: char| first.is_ascii_digit()) && version.contains('.')
            || tag == "latest"
            || tag.starts_with("RELEASE.");
        is_version
            && name.contains('/')
            && !name.starts_with('/')
            && !name.contains("//")
            && !tag.contains('/')
    };
    words.split(|letter| !is_part(letter)).filter(is_image).map(str::to_owned).collect()
}

/// Removes descriptions in definitions, because they contain images as examples.
fn remove_descriptions(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, value| key != "description" || !value.is_string());
            map.values_mut().for_each(remove_descriptions);
        }
        Value::Array(list) => list.iter_mut().for_each(remove_descriptions),
        _ => {}
    }
}

#[tokio::test]
#[ignore = "needs a release of KubeSphere"]
async fn every_image_is_pulled_from_the_registry_of_the_user() {
    let release = release();
    let mut changes = everything();
    changes.push(("/local_registry", "r.local:5000".into()));
    changes.push(("/namespace_override", "ks".into()));
    let spec = release.spec(&changes);
    let desired = desired(release.payload(), &spec, KUBERNETES);
    let (mut all, mut wrong) = (BTreeSet::new(), Vec::new());
    for name in desired.wanted.iter().filter(|name| !desired.refused.contains_key(*name)) {
        let component = &release.payload().components()[name];
        let mut images = BTreeSet::new();
        for mut object in release.objects(name, &spec, &release.generated(name)).await {
            images_of(&object, &mut images);
            remove_descriptions(&mut object);
            images.extend(images_in_texts(&object.to_string()));
        }
        images.extend(release.renderer.extra_images(component, &spec).unwrap());
        let is_right = |image: &&String| {
            let rest = image.strip_prefix("r.local:5000/ks/").and_then(|rest| rest.rsplit_once(':'));
            // The path contains no part of the former name.
            rest.is_some_and(|(path, tag)| !path.is_empty() && !tag.is_empty() && !path.contains(['/', ':']))
        };
        wrong.extend(images.iter().filter(|image| !is_right(image)).map(|image| format!("{name}: {image}")));
        all.extend(images);
    }
    assert_eq!(wrong, [""; 0]);
    for image in [
        "opensearch:2.6.0",
        "ks-jenkins:v3.4.0-2.319.3-1",
        "cloudcore:v1.13.0",
        "scope:1.13.0",
        "minio:RELEASE.2019-08-07T01-59-21Z",
    ] {
        assert!(all.contains(&format!("r.local:5000/ks/{image}")), "{image}: {all:?}");
    }
}
