//! Random changes of kubeadm's kubeconfigs: an accepted one contains credentials that belong together, the text that kk writes for
//! it is accepted again, and a refusal shows no secret.

use kk_test_common::fuzz::{Result, Unstructured, damaged, fuzz};

use super::*;

const DOCUMENTS: [&str; 2] = [include_str!("fixtures/ec.conf"), include_str!("fixtures/rsa.conf")];
/// The fields with Base64 and the places where they are.
const DATA: [&str; 3] = [
    "/clusters/0/cluster/certificate-authority-data",
    "/users/0/user/client-certificate-data",
    "/users/0/user/client-key-data",
];

fn bytes_of(document: &Value, path: &str) -> Vec<u8> {
    from_base64(document.pointer(path).unwrap().as_str().unwrap()).unwrap()
}

/// Changes the structure of a kubeconfig: fields, entries, or the content of one of `DATA`.
fn change(document: &mut Value, others: &[Value], u: &mut Unstructured<'_>) -> Result<()> {
    let path = *u.choose(&DATA)?;
    let parents = ["/clusters/0/cluster", "/users/0/user", "/clusters/0", "/users/0", "", "/contexts/0"];
    let parent = *u.choose(&parents)?;
    match u.int_in_range(0..=5)? {
        0 => {
            let value = u.choose(others)?.pointer(path).cloned();
            if let (Some(place), Some(value)) = (document.pointer_mut(path), value) {
                *place = value;
            }
        }
        1 => {
            let fields = [
                ("exec", json!({"command": "sh", "apiVersion": "client.authentication.k8s.io/v1"})),
                ("auth-provider", json!({"name": "gcp"})),
                ("tokenFile", json!("/etc/shadow")),
                ("server", json!("https://192.0.2.1:6443")),
                ("proxy-url", json!("http://192.0.2.9")),
                ("users", json!([])),
                ("user", json!({})),
                ("\u{1b}[2J", json!(null)),
            ];
            let (name, value) = u.choose(&fields)?;
            if let Some(Value::Object(map)) = document.pointer_mut(parent) {
                map.insert((*name).to_owned(), value.clone());
            }
        }
        2 => {
            if let Some(Value::Object(map)) = document.pointer_mut(parent)
                && !map.is_empty()
            {
                let name = map.keys().nth(u.choose_index(map.len())?).unwrap().clone();
                map.remove(&name);
            }
        }
        3 => {
            if let Some(Value::Array(list)) = document.pointer_mut(u.choose(&["/clusters", "/users"])?) {
                let again = list.first().cloned();
                list.extend(again);
            }
        }
        // The PEM text.
        4 => {
            if let Some(Value::String(data)) = document.pointer_mut(path) {
                let pieces: [&[u8]; 6] =
                    [b"\n", b"\r\n", b"-----", b"-----BEGIN CERTIFICATE-----\n", b"exec: sh\n", b"="];
                *data = base64(&damaged(&from_base64(data).unwrap_or_default(), &pieces, u)?);
            }
        }
        // The bytes of its block.
        _ => {
            if let Some(Value::String(data)) = document.pointer_mut(path)
                && let Some(pem) = from_base64(data).and_then(|text| pem::blocks(&text))
                && let [block, ..] = &pem[..]
                && !block.contents.is_empty()
            {
                let mut der = block.contents.clone();
                let at = u.choose_index(der.len())?;
                der[at] ^= 1 << u.int_in_range(0..=7)?;
                *data = base64(pem::text(&block.label, &der).as_bytes());
            }
        }
    }
    Ok(())
}

#[test]
fn fuzz_kubeconfigs() {
    let documents = DOCUMENTS.map(|text| yaml::parse(text).unwrap());
    let certificates =
        documents.each_ref().map(|document| pem::certificates(&bytes_of(document, DATA[1])).unwrap());
    let secrets = documents.each_ref().map(|document| document.pointer(DATA[2]).unwrap().as_str().unwrap());
    let keys = documents.each_ref().map(|document| String::from_utf8(bytes_of(document, DATA[2])).unwrap());
    let parts = |text: &str| text.as_bytes().chunks(32).map(<[u8]>::to_vec).collect::<Vec<_>>();
    let parts: Vec<_> = secrets.into_iter().chain(keys.iter().map(String::as_str)).flat_map(parts).collect();
    let lines: [&[u8]; 10] = [
        b"\n",
        b"  ",
        b": ",
        b"- ",
        b"&a ",
        b"*a",
        b"<<: ",
        b"users:\n",
        b"    exec: {command: sh}\n",
        b"\"\\e\": ",
    ];
    fuzz("kubeconfigs", |u| {
        let mut document = u.choose(&documents)?.clone();
        for _ in 0..u.int_in_range(0..=2)? {
            change(&mut document, &documents, u)?;
        }
        let mut text = yaml::to_string(&document).into_bytes();
        if u.ratio(1, 3)? {
            text = damaged(&text, &lines, u)?;
        }
        let shown = String::from_utf8_lossy(&text);
        let admin = match AdminKubeconfig::verify(&text) {
            Ok(admin) => admin,
            Err(reason) => {
                assert!(reason.len() < 1000 && !reason.contains(char::is_control), "{reason}");
                let has = |part: &Vec<u8>| reason.as_bytes().windows(part.len()).any(|seen| seen == part);
                assert!(!parts.iter().any(|part| part.len() == 32 && has(part)), "{reason}\n{shown}");
                return Ok(false);
            }
        };
        // The signature does not cover the encoding of what follows the signed part, such as the tag of the algorithm.
        let signed = |der: &[u8]| parsed(der).map(|read| read.tbs_certificate.as_ref().to_vec());
        let known = certificates.iter().flatten().any(|known| signed(known) == signed(&admin.certificate));
        assert!(known, "{shown}");
        let written = admin.text("c", "https://lb:6443");
        let again = AdminKubeconfig::verify(written.as_bytes()).unwrap();
        assert_eq!(again.text("c", "https://lb:6443"), written, "{shown}");
        assert_eq!(authorities_of_kubeconfig(&written), admin.authorities(), "{shown}");
        assert_eq!(programs(&written).unwrap(), [""; 0]);
        assert!(crate::base::certificates::of_kubeconfig(&written).is_some());
        Ok(true)
    });
}

#[test]
fn fuzz_programs_of_kubeconfigs() {
    let pieces: [&[u8]; 12] =
        [b"\n", b"  ", b": ", b"- ", b"&a ", b"*a", b"<<: ", b"exec:", b"users:", b"user:", b"{", b"]"];
    fuzz("programs of kubeconfigs", |u| {
        let mut users = Vec::new();
        let mut expected = Vec::new();
        for _ in 0..u.int_in_range(0..=4)? {
            let name = *u.choose(&["a", "", "1", "\u{1b}[2J", "ü: #", "x\ny"])?;
            let (field, starts) = *u.choose(&[("exec", true), ("auth-provider", true), ("token", false)])?;
            let value = u.choose(&[json!({"command": "sh"}), json!({}), json!(null), json!("x")])?.clone();
            users.push(json!({"name": name, "user": {"client-key": "/k", field: value}}));
            expected.extend(starts.then(|| format!("{name:?} ({field})")));
        }
        let text = yaml::to_string(&json!({"apiVersion": "v1", "kind": "Config", "users": users}));
        assert_eq!(programs(&text).unwrap(), expected, "{text}");
        let text = damaged(text.as_bytes(), &pieces, u)?;
        let text = String::from_utf8_lossy(&text);
        let Ok(found) = programs(&text) else { return Ok(false) };
        assert!(found.iter().all(|user| user.len() < 700 && !user.contains(char::is_control)), "{text}");
        Ok(true)
    });
}

/// kubectl merges maps, too.
#[test]
fn a_program_that_a_merge_adds_to_a_user_is_named() {
    let text = "x: &a\n  exec: {command: sh}\nusers:\n- name: a\n  user:\n    <<: *a\n";
    assert_eq!(programs(text).unwrap(), ["\"a\" (exec)"]);
}
