//! Everything that is rendered onto hosts: embedded files of `templates/`, overridable by a directory of the user.

use std::{collections::BTreeMap, path::Path};

use tera::{Context, Tera};

/// Name (path below `templates/`) and text of every template. `build.rs` writes the list.
const EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/templates.rs"));

/// A template that cannot be read, parsed or rendered.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// A file of the user's directory cannot be read.
    #[error("cannot read the template {path}: {reason}")]
    Read {
        /// The file.
        path: String,
        /// The system's message.
        reason: String,
    },
    /// A template is not well-formed, or names a value that does not exist.
    #[error("template {name}: {reason}")]
    Render {
        /// Path below the templates directory.
        name: String,
        /// The location and the cause.
        reason: String,
    },
}

/// All templates, ready to render.
pub struct Templates {
    tera: Tera,
}

impl Templates {
    /// The embedded templates; files of the same name in `directory` replace them.
    pub fn new(directory: Option<&Path>) -> Result<Self, TemplateError> {
        let mut texts: BTreeMap<&str, String> =
            EMBEDDED.iter().map(|(name, text)| (*name, (*text).to_owned())).collect();
        for (name, text) in &mut texts {
            let Some(path) = directory.map(|directory| directory.join(name)) else { continue };
            match std::fs::read_to_string(&path) {
                Ok(own) => *text = own,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(TemplateError::Read {
                        path: path.display().to_string(),
                        reason: error.to_string(),
                    });
                }
            }
        }
        let mut tera = Tera::new();
        // Templates render configuration, never HTML.
        tera.autoescape_on(Vec::<&'static str>::new());
        tera.add_raw_templates(texts.iter().map(|(name, text)| (*name, text.as_str())))
            .map_err(|error| TemplateError::Render { name: "(all)".to_owned(), reason: describe(&error) })?;
        Ok(Self { tera })
    }

    /// Renders one template with the fields of a JSON object.
    pub fn render(&self, name: &str, values: &serde_json::Value) -> Result<String, TemplateError> {
        let fail =
            |error: &tera::Error| TemplateError::Render { name: name.to_owned(), reason: describe(error) };
        let context = Context::from_serialize(values).map_err(|error| fail(&error))?;
        self.tera.render(name, &context).map_err(|error| fail(&error))
    }
}

/// The error with its causes in one line each.
fn describe(error: &tera::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_file_of_the_users_directory_wins() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("containerd")).unwrap();
        std::fs::write(directory.path().join("containerd/crictl.yaml"), "timeout: {{ seconds }}\n").unwrap();
        let templates = Templates::new(Some(directory.path())).unwrap();
        assert_eq!(
            templates.render("containerd/crictl.yaml", &json!({"seconds": 3})).unwrap(),
            "timeout: 3\n"
        );
    }

    #[test]
    fn a_missing_value_is_an_error_that_names_it() {
        let templates = Templates::new(None).unwrap();
        let error = templates.render("etcd/etcd.env", &json!({})).unwrap_err().to_string();
        assert!(error.contains("etcd/etcd.env") && error.contains("name"), "{error}");
    }

    #[test]
    fn a_broken_template_of_the_user_is_refused_at_once() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("os")).unwrap();
        std::fs::write(directory.path().join("os/limits.conf"), "{% if %}").unwrap();
        assert!(Templates::new(Some(directory.path())).is_err());
    }
}
