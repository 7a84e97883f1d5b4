//! Renders templates of manifests and values: Jinja, as implemented by minijinja.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde_json::Value;
use sha2::Sha256;

use super::Registry;

/// The rendered text. `image('name')` returns the name in the configured registry.
pub(super) fn render(text: &str, context: &Value, registry: &Registry) -> Result<String, String> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Chainable);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_keep_trailing_newline(true);
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    super::variables::extend(&mut environment);
    environment.add_filter("jwt", |payload: String, secret: String| token(&payload, &secret));
    environment.add_filter("b64encode", |text: String| STANDARD.encode(text));
    let registry = registry.clone();
    environment.add_function("image", move |name: String| registry.rewrite(&name));
    environment.render_str(text, context).map_err(|error| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
        format!("{error}{cause}")
    })
}

/// A token (RFC 7519) with this `payload`, signed with HS256.
fn token(payload: &str, secret: &str) -> String {
    let [header, payload] =
        [r#"{"alg":"HS256","typ":"JWT"}"#, payload].map(|part| URL_SAFE_NO_PAD.encode(part));
    let text = format!("{header}.{payload}");
    let signature = URL_SAFE_NO_PAD.encode(hmac(secret.as_bytes(), text.as_bytes()));
    format!("{text}.{signature}")
}

fn hmac(secret: &[u8], text: &[u8]) -> [u8; 32] {
    let mac = Hmac::<Sha256>::new_from_slice(secret).expect("a key of HMAC has any length");
    mac.chain_update(text).finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The first values are test cases 2 and 6 of RFC 4231.
    #[test]
    fn signatures_are_those_of_the_standard() {
        let long = [0xaa; 131];
        for (secret, text, expected) in [
            (
                &b"Jefe"[..],
                "what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                &long,
                "Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ] {
            assert_eq!(kk_util::hex(hmac(secret, text.as_bytes())), expected);
        }
    }

    #[test]
    fn a_token_has_three_parts_and_no_padding() {
        let text = render("{{ '{}' | jwt('secret') }}", &json!({}), &Registry::default()).unwrap();
        assert_eq!(text.split('.').map(str::len).collect::<Vec<_>>(), [36, 3, 43]);
        assert!(!text.contains('='), "{text}");
    }
}
