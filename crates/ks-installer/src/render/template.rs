//! Templates of manifests and values: Jinja, as minijinja knows it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde_json::Value;

use super::Registry;

/// The text with its template parts replaced. `image('name')` gives the name in the user's registry.
pub(super) fn render(text: &str, context: &Value, registry: &Registry) -> Result<String, String> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Chainable);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_keep_trailing_newline(true);
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.add_filter("b64encode", |text: String| STANDARD.encode(text));
    let registry = registry.clone();
    environment.add_function("image", move |name: String| registry.rewrite(&name));
    environment.render_str(text, context).map_err(|error| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
        format!("{error}{cause}")
    })
}
