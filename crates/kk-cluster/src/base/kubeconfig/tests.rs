use std::fmt::Write as _;

use rcgen::{CertificateParams, DnType, Issuer, KeyPair};

use super::*;

const EC: &str = include_str!("fixtures/ec.conf");
const RSA: &str = include_str!("fixtures/rsa.conf");

/// A CA with its key.
struct Ca(rcgen::Certificate, Issuer<'static, KeyPair>);

impl Ca {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "kubernetes");
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Self(certificate, Issuer::new(params, key))
    }
}

/// Contents of a kubeconfig, as PEM.
struct Parts {
    cas: String,
    certificate: String,
    key: String,
}

impl Parts {
    fn new(ca: &Ca, name: &str, groups: &[&str]) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.remove(DnType::CommonName);
        params.distinguished_name.push(DnType::CommonName, name);
        for group in groups {
            params.distinguished_name.push(DnType::OrganizationName, *group);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &ca.1).unwrap().pem();
        Self { cas: ca.0.pem(), certificate, key: key.serialize_pem() }
    }

    fn text(&self) -> String {
        kubeconfig(
            &base64(self.cas.as_bytes()),
            &base64(self.certificate.as_bytes()),
            &base64(self.key.as_bytes()),
        )
    }
}

/// A kubeconfig as kubeadm writes it.
fn kubeconfig(ca: &str, certificate: &str, key: &str) -> String {
    format!(
        "apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: {ca}\n    server: https://lb:6443\n  name: c\n\
         contexts:\n- context:\n    cluster: c\n    user: kubernetes-admin\n  name: kubernetes-admin@c\n\
         current-context: kubernetes-admin@c\nkind: Config\nusers:\n- name: kubernetes-admin\n  user:\n    \
         client-certificate-data: {certificate}\n    client-key-data: {key}\n"
    )
}

fn good() -> Parts {
    Parts::new(&Ca::new(), USER, &[GROUPS[0]])
}

fn trouble(text: &str) -> String {
    AdminKubeconfig::verify(text.as_bytes()).expect_err(text)
}

#[test]
fn a_kubeconfig_of_kubeadm_is_written_anew_with_another_address() {
    for (of, text) in
        [("rcgen", good().text()), ("kubeadm 1.31", EC.to_owned()), ("kubeadm 1.28", RSA.to_owned())]
    {
        let admin = AdminKubeconfig::verify(text.as_bytes()).expect(of);
        let written = admin.text("cluster.local", "https://192.0.2.1:6443");
        let document = yaml::parse(&written).unwrap();
        let read = yaml::parse(&text).unwrap();
        for path in [
            "/clusters/0/cluster/certificate-authority-data",
            "/users/0/user/client-certificate-data",
            "/users/0/user/client-key-data",
        ] {
            // rcgen writes other line ends.
            if of != "rcgen" {
                assert_eq!(document.pointer(path), read.pointer(path), "{of} {path}");
            }
            // Some tools, and kk, search for a whole line.
            let value = document.pointer(path).and_then(Value::as_str).unwrap();
            assert!(written.contains(&format!(": {value}\n")), "{of} {path}");
        }
        assert_eq!(document["clusters"][0]["cluster"]["server"], "https://192.0.2.1:6443");
        assert_eq!(document["clusters"][0]["name"], "cluster.local");
        assert_eq!(document["users"][0]["name"], "kubernetes-admin");
        assert_eq!(document["current-context"], "kubernetes-admin@cluster.local");
        let context = &document["contexts"][0];
        assert_eq!(context["name"], document["current-context"]);
        assert_eq!(
            (&context["context"]["cluster"], &context["context"]["user"]),
            (&json!("cluster.local"), &json!(USER))
        );
        assert!(crate::base::certificates::of_kubeconfig(&written).is_some(), "{of}");
        assert_eq!(authorities_of_kubeconfig(&written), admin.authorities());
        assert!(AdminKubeconfig::verify(written.as_bytes()).is_ok(), "{of}");
        assert!(!format!("{admin:?}").contains("PRIVATE"), "{of}");
    }
}

#[test]
fn a_name_that_yaml_would_take_for_a_number_stays_a_name() {
    let admin = AdminKubeconfig::verify(good().text().as_bytes()).unwrap();
    for name in ["123", "1e3", "true", "null", "a"] {
        let document = yaml::parse(&admin.text(name, "https://lb:6443")).unwrap();
        assert_eq!(document["clusters"][0]["name"], *name);
        assert_eq!(document["contexts"][0]["context"]["cluster"], *name);
    }
}

/// During a rotation.
#[test]
fn two_cas_are_kept_in_their_order_and_either_may_have_signed() {
    let (old, new) = (Ca::new(), Ca::new());
    for signs in [&old, &new] {
        let mut parts = Parts::new(signs, USER, &[GROUPS[1]]);
        parts.cas = old.0.pem() + &new.0.pem();
        let admin = AdminKubeconfig::verify(parts.text().as_bytes()).unwrap();
        assert_eq!(admin.authorities().len(), 2);
        let written = yaml::parse(&admin.text("c", "https://lb:6443")).unwrap();
        let data = written["clusters"][0]["cluster"]["certificate-authority-data"].as_str().unwrap();
        let text = String::from_utf8(from_base64(data).unwrap()).unwrap();
        assert_eq!(text.replace("\r\n", "\n"), parts.cas.replace("\r\n", "\n"));
    }
}

#[test]
fn text_beside_the_certificates_is_left_out() {
    let mut parts = good();
    parts.cas = format!("exec: sh\n{}", parts.cas);
    let admin = AdminKubeconfig::verify(parts.text().as_bytes()).unwrap();
    let written = admin.text("c", "https://lb:6443");
    assert_eq!(admin.authorities(), authorities_of_kubeconfig(&written));
    assert!(!written.contains(&base64(b"exec: sh\n")[..8]));
}

#[test]
fn fields_that_kubeadm_does_not_write_are_refused() {
    let text = good().text();
    for (field, why) in [
        (
            "exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, args: [-c, id]}",
            "starts a program",
        ),
        ("auth-provider: {name: gcp, config: {cmd-path: /bin/sh}}", "starts a program"),
        ("tokenFile: /etc/shadow", "names a file"),
        ("token: abc", "kubeadm does not write"),
        ("client-key: /root/.ssh/id_ed25519", "names a file"),
        ("client-certificate: /etc/passwd", "names a file"),
        ("username: a", "kubeadm does not write"),
        ("as: system:admin", "kubeadm does not write"),
        ("extensions: []", "kubeadm does not write"),
    ] {
        let why_not = trouble(&text.replace("  user:\n", &format!("  user:\n    {field}\n")));
        let name = field.split(':').next().unwrap();
        assert!(
            why_not.contains(why) && why_not.contains(&format!("its user has the field {name:?}")),
            "{why_not}"
        );
    }
    // A line break was lost before the text of the key.
    let joined =
        trouble(&text.replace("client-key-data: ", "client-key-data     LS0tLS1CRUdJTiBFQyBQUklWQVRF: "));
    assert!(joined.starts_with("its user has a field with a long name, which kubeadm"), "{joined}");
    for (field, why) in [
        ("proxy-url: http://192.0.2.9", "another machine"),
        ("insecure-skip-tls-verify: true", "accepts any server"),
        ("certificate-authority: /etc/passwd", "names a file"),
        ("tls-server-name: other", "kubeadm does not write"),
        ("\"\\e[2J\": a", "kubeadm does not write"),
    ] {
        let why_not = trouble(&text.replace("- cluster:\n", &format!("- cluster:\n    {field}\n")));
        assert!(why_not.contains(why) && why_not.contains("its cluster has the field"), "{why_not}");
        assert!(!why_not.contains('\u{1b}'));
    }
    for (list, entry) in [
        ("users:\n", "- {name: other, user: {exec: {command: sh}}}\n"),
        ("clusters:\n", "- {name: other, cluster: {}}\n"),
    ] {
        assert!(trouble(&text.replace(list, &format!("{list}{entry}"))).contains("it has 2 "));
    }
}

#[test]
fn certificates_and_keys_that_do_not_belong_together_are_refused() {
    let (ca, other) = (Ca::new(), Ca::new());
    let is_refused = |change: &dyn Fn(&mut Parts), why: &str| {
        let mut parts = Parts::new(&ca, USER, &[GROUPS[0]]);
        change(&mut parts);
        let found = trouble(&parts.text());
        assert!(found.contains(why), "{why}: {found}");
        assert!(!found.contains("BEGIN"), "{found}");
    };
    is_refused(&|parts| parts.cas = other.0.pem(), "not signed by its CA");
    is_refused(
        &|parts| parts.certificate = Parts::new(&other, USER, &[GROUPS[0]]).certificate,
        "not the key",
    );
    is_refused(
        &|parts| {
            Parts { cas: _, certificate: parts.certificate, key: parts.key } =
                Parts::new(&other, USER, &[GROUPS[0]]);
        },
        "not signed by its CA",
    );
    is_refused(&|parts| parts.key = KeyPair::generate().unwrap().serialize_pem(), "not the key");
    is_refused(&|parts| parts.key = parts.certificate.clone(), "not one private key");
    is_refused(&|parts| parts.key = parts.key.clone() + &parts.key, "not one private key");
    is_refused(&|parts| parts.certificate = parts.key.clone(), "not one certificate");
    is_refused(&|parts| parts.certificate = parts.certificate.repeat(2), "not one certificate");
    is_refused(&|parts| parts.cas = "\n".into(), "not 1 to 8 certificates");
    is_refused(&|parts| parts.cas = parts.cas.repeat(9), "not 1 to 8 certificates");
    is_refused(&|parts| parts.cas += &parts.key.clone(), "not 1 to 8 certificates");
    is_refused(&|parts| parts.cas = "certificate".into(), "not 1 to 8 certificates");
}

#[test]
fn only_the_administrators_certificate_is_taken() {
    let ca = Ca::new();
    for (name, groups) in [
        ("kubernetes-super-admin", &[GROUPS[1]][..]),
        ("system:node:a", &["system:nodes"]),
        (USER, &["system:nodes"]),
        (USER, &[]),
    ] {
        let found = trouble(&Parts::new(&ca, name, groups).text());
        assert!(found.contains(&format!("is for the user {name:?}")), "{found}");
    }
    for group in GROUPS {
        assert!(AdminKubeconfig::verify(Parts::new(&ca, USER, &[group]).text().as_bytes()).is_ok());
    }
}

#[test]
fn what_is_not_base64_or_not_there_is_named() {
    let parts = good();
    let [ca, certificate, key] =
        [&parts.cas, &parts.certificate, &parts.key].map(|text| base64(text.as_bytes()));
    assert_eq!(
        trouble(&kubeconfig("'*'", &certificate, &key)),
        "its certificate-authority-data is not Base64"
    );
    assert_eq!(trouble(&kubeconfig(&ca, "[]", &key)), "it has no client-certificate-data");
    assert_eq!(
        trouble(&kubeconfig(&ca, &certificate, "''")),
        "its client-key-data is not one private key (PEM)"
    );
    assert_eq!(trouble("{}"), "it has 0 clusters, and kubeadm writes one");
    assert_eq!(trouble("clusters: [{cluster: 1}]"), "its cluster is not a map");
}

#[test]
fn what_is_large_or_makes_much_of_little_is_refused_without_its_content() {
    let text = good().text();
    assert_eq!(trouble(&format!("{text}# {}", "x".repeat(1 << 20))), "it is larger than 1048576 bytes");
    assert_eq!(AdminKubeconfig::verify(b"\xff\xfe").unwrap_err(), "it is not text");
    let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (name, of) in ('b'..='j').zip('a'..) {
        let _ = writeln!(bomb, "{name}: &{name} [{}]", vec![format!("*{of}"); 9].join(", "));
    }
    let began = std::time::Instant::now();
    for bad in [
        format!("{text}{bomb}"),
        format!("{text}x: &secret y\n"),
        format!("{text}x: *secret\n"),
        format!("{text}users: [secret]\n"),
        text.replace("  user:\n", "  user:\n    client-key-data: secret\n"),
        format!("{text}x: {}secret{}\n", "[".repeat(100_000), "]".repeat(100_000)),
        format!("{text}x: [{}]\n", "a,".repeat(100_000)),
        format!("{text}---\n{text}"),
        "a: [secret".to_owned(),
        "\t- secret: {".to_owned(),
        format!("{text}<<: {{exec: secret}}\n"),
    ] {
        let found = trouble(&bad);
        assert!(!found.contains("secret"), "{found}");
        assert!(found.starts_with("it is not plain YAML"), "{found}");
    }
    assert!(began.elapsed() < std::time::Duration::from_secs(20));
    assert!(trouble("- a").contains("it has 0 clusters"));
    assert!(trouble("just text").contains("it has 0 clusters"));
}

#[test]
fn users_who_start_programs_are_named() {
    let names = |text: &str| programs(text).unwrap();
    assert_eq!(names(&good().text()), [""; 0]);
    assert_eq!(
        names("users: [{name: a, user: {exec: {command: sh}}}, {name: b, user: {token: t}}]"),
        ["\"a\" (exec)"]
    );
    assert_eq!(
        names("users: [{name: \"\\e[1m\", user: {auth-provider: {}}}]"),
        ["\"\\u{1b}[1m\" (auth-provider)"]
    );
    assert_eq!(names("a: 1"), [""; 0]);
    assert!(programs("a: [").is_err());
}
