//! Converts text into a [`Manifest`].

use crate::findings::{At, Findings};
use crate::{ConfigErrors, Diagnostic, Manifest, normalise, reader, schema, typing, v1alpha2, yaml};

/// Reads a Manifest; also returns the warnings. `file_name` only appears in messages.
pub fn load_manifest(file_name: &str, text: &str) -> Result<(Manifest, Vec<Diagnostic>), ConfigErrors> {
    let mut out = Findings::new(file_name, text);
    let parsed = yaml::parse(text);
    let schema = schema::of::<v1alpha2::Manifest>();
    let keys = typing::keys(&schema);
    for error in &parsed.errors {
        typing::report(error, &keys, &mut out);
    }
    let mut manifest = None;
    for document in parsed.documents.iter().filter(|document| !document.root.is_null()) {
        let root = &document.root;
        let kind = root.get("kind").and_then(|kind| Some((kind.span, kind.text()?)));
        match kind {
            Some((_, "Manifest")) if manifest.is_none() => manifest = Some(root),
            Some((at, "Manifest")) => {
                out.structure_error(at, "the file has two Manifests", "put each into a file of its own");
            }
            Some((at, "Cluster")) => {
                let hint = "`kk create manifest -f FILE` writes the Manifest of a cluster";
                out.structure_error(at, "this is a Cluster, not a Manifest", hint);
            }
            Some((at, other)) => {
                let message = format!("documents of kind `{other}` are not known here");
                out.structure_error(at, message, "specify a file that contains a Manifest");
            }
            None => out.structure_error(root.span, "this document has no kind", begin()),
        }
    }
    let Some(root) = manifest else {
        out.missing(At::nowhere(), format!("{file_name} has no Manifest"), begin());
        return Err(out.finish().expect_err("an error was added or found before"));
    };
    typing::check(root, &keys, &mut out);
    let json = reader::read(root, &schema, &mut out);
    let document = serde_json::from_value(json).unwrap_or_else(|error| {
        // Types and schema have the same source, so this is not the user's mistake.
        let message = format!("the document cannot be read: {error}");
        out.structure_error(root.span, message, "this is a mistake in kk; please report it");
        v1alpha2::Manifest::default()
    });
    let manifest = normalise::manifest(document, At::root(root), &mut out);
    Ok((manifest, out.finish()?))
}

fn begin() -> String {
    format!("begin it with `apiVersion: {}` and `kind: Manifest`", v1alpha2::API_VERSION)
}
