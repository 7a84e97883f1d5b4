//! Registries that want a password for another server, too much memory, or requests without TLS.

use axum::http::StatusCode;
use kk_config::{KubeVersion, RegistryAuth, Secret, Spec};

use super::super::registries::{RefusalKind, Registries, Source, judge};
use crate::store::tests::server::{Fault, Server};

const MANIFEST: &str = "/v2/team/app/manifests/v1";
const TAGS: &str = "/v2/team/app/tags/list";

/// The source of an image on this server, with a login for the server.
fn source(server: &Server, password: Option<&str>) -> Source {
    let host = server.address.to_string();
    let spec = Spec::all_in_one("a", [10, 0, 0, 1].into(), KubeVersion::default()).unwrap();
    let auth = RegistryAuth {
        username: password.map(|_| "user".to_owned()),
        password: password.map(|word| Secret::new(word.to_owned())),
        plain_http: server.ca.is_empty(),
        skip_tls_verify: true,
        ..RegistryAuth::default()
    };
    let mut registry = spec.registry;
    registry.auths.insert(host.clone(), auth);
    Registries::new(registry).target(&format!("{host}/team/app:v1").parse().unwrap()).unwrap()
}

/// Why the manifest cannot be fetched, and whether a retry may help.
async fn refusal(source: &Source) -> (String, bool) {
    let failure = source.client.manifest(&source.reference).await.unwrap_err();
    let refusal = judge(source, &failure, &mut false);
    (refusal.reason, refusal.kind == RefusalKind::Transient)
}

/// A server whose API needs a token of the service at this address.
async fn with_tokens_of(realm: impl Fn(&Server) -> String) -> Server {
    let server = Server::plain().await;
    for path in ["/v2/", MANIFEST, TAGS] {
        server.put(path, b"{}");
    }
    server.faults_at(
        "/v2/",
        [Fault::Challenge(format!("Bearer realm=\"{}\",service=\"hub\"", realm(&server)))],
    );
    server
}

fn authorizations(server: &Server, path: &str) -> Vec<Option<String>> {
    server.requests().into_iter().filter(|seen| seen.path == path).map(|seen| seen.authorization).collect()
}

#[tokio::test]
async fn an_answer_is_read_up_to_its_maximum_size() {
    let server = Server::plain().await;
    server.put("/v2/", b"{}");
    let source = source(&server, None);
    for (size, fits) in [(4 << 20, true), ((4 << 20) + 1, false), (64 << 20, false)] {
        server.put(MANIFEST, &vec![b' '; size]);
        let read = source.client.manifest(&source.reference).await;
        assert_eq!(read.as_ref().map(Vec::len).ok(), fits.then_some(size));
        if !fits {
            assert_eq!(refusal(&source).await, ("its answer is larger than 4096 KiB".to_owned(), false));
        }
    }
    server.put(TAGS, &[br#"{"tags": ["v1"]}"#.to_vec(), vec![b' '; 4 << 20]].concat());
    assert!(source.client.tags(&source.reference).await.is_err());
    server.put(TAGS, br#"{"tags": ["v1"]}"#);
    assert_eq!(source.client.tags(&source.reference).await.unwrap(), ["v1"]);
}

#[tokio::test]
async fn a_token_is_used_only_if_it_is_small_text() {
    let large = format!(r#"{{"token": "{}"}}"#, "x".repeat(64 << 10));
    for (answer, error) in [
        (r#"{"token": "sesame"}"#, None),
        (r#"{"access_token": "sesame", "expires_in": -1}"#, None),
        (r#"{"token": "a\u0001b"}"#, Some("its token service returns a token with control characters")),
        (r#"{"token": "a\nb: c"}"#, Some("its token service returns a token with control characters")),
        (&large, Some("its answer is larger than 64 KiB")),
        ("{}", Some("its token service returns no token")),
        ("sesame", Some("its token service returns no token")),
    ] {
        let server = with_tokens_of(|server| format!("{}/token", server.base())).await;
        server.put("/token", answer.as_bytes());
        let source = source(&server, None);
        match error {
            None => assert_eq!(source.client.manifest(&source.reference).await.unwrap(), b"{}"),
            Some(error) => assert_eq!(refusal(&source).await, (error.to_owned(), false)),
        }
        let sent = authorizations(&server, MANIFEST);
        assert_eq!(sent, error.map_or(vec![Some("Bearer sesame".to_owned())], |_| Vec::new()), "{answer}");
    }
}

#[tokio::test]
async fn a_password_is_not_sent_to_another_server() {
    let other = Server::plain().await;
    other.put("/token", br#"{"token": "sesame"}"#);
    // The name resolves to the same machine, and is not the name of the registry.
    let address = format!("http://localhost:{}/token", other.address.port());
    let server = with_tokens_of(|_| address.clone()).await;
    for password in [None, Some("word")] {
        let (reason, _) = refusal(&source(&server, password)).await;
        assert_eq!(reason, "its token service localhost does not use TLS");
        server.faults_at("/v2/", [Fault::Challenge(format!("Bearer realm=\"{address}\""))]);
    }
    assert!(other.requests().is_empty());
    assert!(server.requests().iter().all(|seen| seen.authorization.is_none()));

    // Its own token service gets it. A redirect of that service is not followed.
    let server = with_tokens_of(|server| format!("{}/token", server.base())).await;
    server.put("/token", b"");
    server.faults_at("/token", [Fault::Redirect(format!("{}/token", other.base()))]);
    let (reason, _) = refusal(&source(&server, Some("word"))).await;
    assert_eq!(reason, "its token service answers 302");
    // "user:word" in Base64.
    assert_eq!(authorizations(&server, "/token"), [Some("Basic dXNlcjp3b3Jk".to_owned())]);
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn a_redirect_gets_no_password_and_does_not_leave_tls() {
    let other = Server::plain().await;
    other.put("/content", b"{\"a\": 1}");
    let server = Server::plain().await;
    server.put("/v2/", b"");
    server.put(MANIFEST, b"");
    let to = Fault::Redirect(format!("{}/content", other.base()));
    server.faults_at("/v2/", [Fault::Challenge("Basic realm=\"hub\"".to_owned())]);
    server.faults_at(MANIFEST, [to.clone()]);
    let plain = source(&server, Some("word"));
    assert_eq!(plain.client.manifest(&plain.reference).await.unwrap(), b"{\"a\": 1}");
    assert_eq!(authorizations(&server, MANIFEST), [Some("Basic dXNlcjp3b3Jk".to_owned())]);
    assert_eq!(authorizations(&other, "/content"), [None]);

    let server = Server::tls().await;
    server.put("/v2/", b"");
    server.put(MANIFEST, b"");
    server.faults_at(MANIFEST, [to]);
    let (reason, may_pass) = refusal(&source(&server, None)).await;
    assert_eq!((reason.as_str(), may_pass), ("it redirects from https to http", false));
    assert_eq!(other.requests().len(), 1);
}

#[tokio::test]
async fn a_refused_password_is_not_tried_again_and_a_broken_service_is() {
    for (code, reason, may_pass) in [
        (StatusCode::UNAUTHORIZED, "it refuses the user name or the password (401)", false),
        (StatusCode::FORBIDDEN, "it refuses the user name or the password (403)", false),
        (StatusCode::NOT_FOUND, "its token service answers 404", false),
        (StatusCode::BAD_GATEWAY, "its token service answers 502", true),
    ] {
        let server = with_tokens_of(|server| format!("{}/token", server.base())).await;
        server.put("/token", b"");
        server.faults_at("/token", [Fault::Status(code)]);
        assert_eq!(refusal(&source(&server, Some("word"))).await, (reason.to_owned(), may_pass), "{code}");
    }
}
