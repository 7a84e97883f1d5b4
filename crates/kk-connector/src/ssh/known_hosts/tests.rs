//! Files of known keys, damaged and whole: only keys that the file names for a host are trusted.

use kk_test_common::fuzz::{Result, Unstructured, damaged, fuzz};

use super::*;

/// Names as they are looked up, for which lines are generated.
const NAMES: [&str; 4] = ["node1", "[node1]:2222", "node2.example.com", "[10.0.0.1]:2222"];
const PATTERNS: [&str; 14] = [
    "node1",
    "NODE1",
    "node*",
    "node?",
    "*",
    "[node1]:2222",
    "[*]:2222",
    "*.example.com",
    "n*e*.e*m",
    "10.0.0.?",
    "!node1",
    "![node1]:2222",
    "!*.com",
    "?",
];

/// A public key of this type, as an SSH blob.
fn blob(kind: &str, data: u8) -> Vec<u8> {
    let string = |bytes: &[u8]| [&u32::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat();
    [string(kind.as_bytes()), string(&[data; 32])].concat()
}

fn keys() -> [Vec<u8>; 4] {
    [blob("ssh-ed25519", 1), blob("ssh-ed25519", 2), blob("ssh-rsa", 3), blob("ecdsa-sha2-nistp256", 4)]
}

/// A host on this port with this file of known keys.
fn config(port: u16, policy: HostKeyPolicy, path: &Path) -> SshConfig {
    let mut config = SshConfig::new("node1", "node1", "root");
    config.port = port;
    config.host_keys = policy;
    config.known_hosts = path.to_owned();
    config
}

/// Whether a pattern matches, for each of its ends and each end of the text.
fn is_match(pattern: &str, text: &str) -> bool {
    let mut row = vec![false; text.len() + 1];
    row[0] = true;
    for byte in pattern.bytes() {
        let before = row.clone();
        for at in 0..row.len() {
            row[at] = match byte {
                b'*' => before[at] || at > 0 && row[at - 1],
                _ => at > 0 && before[at - 1] && (byte == b'?' || byte == text.as_bytes()[at - 1]),
            };
        }
    }
    row[text.len()]
}

/// A line, and the expected key for each of `NAMES`.
struct Line {
    text: String,
    trust: Option<Trust>,
    blob: Vec<u8>,
    names: [bool; 4],
}

impl Line {
    fn any(u: &mut Unstructured<'_>) -> Result<Self> {
        let (patterns, names) = if u.ratio(1, 4)? {
            let hashed = *u.choose(&NAMES)?;
            let salt = [u.arbitrary::<u8>()?; 20];
            let mut mac = Hmac::<Sha1>::new_from_slice(&salt).unwrap();
            mac.update(hashed.as_bytes());
            let hash = STANDARD.encode(mac.finalize().into_bytes());
            (format!("|1|{}|{hash}", STANDARD.encode(salt)), NAMES.map(|name| name == hashed))
        } else {
            let mut patterns = Vec::new();
            for _ in 0..u.int_in_range(1..=3)? {
                patterns.push(*u.choose(&PATTERNS)?);
            }
            let lower: Vec<_> = patterns.iter().map(|pattern| pattern.to_lowercase()).collect();
            let names = NAMES.map(|name| {
                let excluded = lower
                    .iter()
                    .any(|pattern| pattern.strip_prefix('!').is_some_and(|not| is_match(not, name)));
                !excluded && lower.iter().any(|pattern| !pattern.starts_with('!') && is_match(pattern, name))
            });
            (patterns.join(","), names)
        };
        let marker = *u.choose(&["", "", "", "@revoked ", "@cert-authority ", "@other "])?;
        let trust = match marker {
            "" => Some(Trust::Host),
            "@revoked " => Some(Trust::Revoked),
            "@cert-authority " => Some(Trust::Authority),
            _ => None,
        };
        let blob = u.choose(&keys())?.clone();
        let (space, comment) = (u.choose(&[" ", "\t", "  "])?, u.choose(&["", " root@host", " @revoked *"])?);
        let text =
            format!("{marker}{patterns}{space}{} {}{comment}", key_type(&blob), STANDARD.encode(&blob));
        Ok(Self { text, trust, blob, names })
    }
}

/// Lines with comments between them, and the expected keys of each of `NAMES`.
fn file(u: &mut Unstructured<'_>) -> Result<(String, [Vec<KnownKey>; 4])> {
    let mut expected = [const { Vec::new() }; 4];
    let mut text = String::new();
    for number in 1..=u.int_in_range(0..=6)? {
        if u.ratio(1, 6)? {
            text.push_str(u.choose(&["\n", "# node1 ssh-rsa AAAA\n", "node1\n", "node1 ssh-rsa %\n"])?);
            continue;
        }
        let line = Line::any(u)?;
        for (keys, is_named) in expected.iter_mut().zip(line.names) {
            if let (true, Some(trust)) = (is_named, line.trust) {
                keys.push(KnownKey { line: number, trust, blob: line.blob.clone() });
            }
        }
        text.push_str(&line.text);
        text.push_str(u.choose(&["\n", "\r\n"])?);
    }
    if u.ratio(1, 4)? {
        text.truncate(text.trim_end().len());
    }
    Ok((text, expected))
}

/// Whether a key may be accepted if it must be known.
fn is_trusted(keys: &[KnownKey], on_default_port: &[KnownKey], offered: &[u8]) -> bool {
    let has = |keys: &[KnownKey], trust| keys.iter().any(|key| key.trust == trust && key.blob == offered);
    let is_revoked = has(keys, Trust::Revoked) || has(on_default_port, Trust::Revoked);
    let has_others = keys.iter().any(|key| key.trust == Trust::Host);
    !is_revoked && (has(keys, Trust::Host) || !has_others && has(on_default_port, Trust::Host))
}

#[test]
fn fuzz_known_hosts() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("known_hosts");
    fuzz("known hosts", |u| {
        let (text, expected) = file(u)?;
        for (name, keys) in NAMES.iter().zip(&expected) {
            assert_eq!(look_up(&text, name), *keys, "{name}\n{text}");
        }
        let offered = if u.ratio(1, 4)? {
            let kind = u.choose(&["ssh-dss", "", "x\n* ssh-rsa AAAA", "@revoked *", "ssh-rsa "])?;
            blob(kind, 5)
        } else {
            u.choose(&keys())?.clone()
        };
        fs::write(&path, &text).unwrap();
        let port = *u.choose(&[22, 2222])?;
        let none = Vec::new();
        let [plain, with_port, ..] = &expected;
        let (keys, on_default_port) = if port == 22 { (plain, &none) } else { (with_port, plain) };
        let verify = |policy| {
            let config = config(port, policy, &path);
            KnownHosts::read(&config).unwrap().verify(&offered)
        };
        let is_known = verify(HostKeyPolicy::Strict).is_ok();
        assert_eq!(is_known, is_trusted(keys, on_default_port, &offered), "{port}\n{text}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);

        let all = keys.iter().chain(on_default_port);
        let is_new = !keys.iter().any(|key| key.trust == Trust::Host)
            && all.clone().all(|key| key.trust != Trust::Authority)
            && all.clone().all(|key| key.trust != Trust::Revoked || key.blob != offered);
        let is_accepted = verify(HostKeyPolicy::AcceptNew).is_ok();
        assert_eq!(is_accepted, is_known || is_new, "{port}\n{text}");
        if is_accepted && !is_known {
            // One line was added, for this host only.
            let after = fs::read_to_string(&path).unwrap();
            let line = after.strip_prefix(&text).unwrap();
            assert_eq!(line.trim().lines().count(), 1, "{after}");
            for (name, keys) in NAMES.iter().zip(&expected) {
                let is_own = *name == super::name("node1", port);
                let found = look_up(&after, name);
                assert_eq!(
                    (found.len(), &found[..keys.len()]),
                    (keys.len() + usize::from(is_own), &keys[..])
                );
            }
            assert!(verify(HostKeyPolicy::Strict).is_ok(), "{after}");
        }
        Ok(is_accepted)
    });
}

#[test]
fn fuzz_damaged_known_hosts() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("known_hosts");
    let pieces: [&[u8]; 14] = [
        b"\n",
        b" ",
        b"\t",
        b"#",
        b"@revoked ",
        b"@cert-authority ",
        b"|1|",
        b"|",
        b"!",
        b"*",
        b",",
        b"=",
        b"\0",
        b"\xff",
    ];
    fuzz("damaged known hosts", |u| {
        let (text, _) = file(u)?;
        let bytes = damaged(text.as_bytes(), &pieces, u)?;
        fs::write(&path, &bytes).unwrap();
        let offered = u.choose(&keys())?.clone();
        let port = *u.choose(&[22, 2222])?;
        let config = config(port, HostKeyPolicy::Strict, &path);
        let is_known = KnownHosts::read(&config).unwrap().verify(&offered).is_ok();
        // Whatever happened to the file, a key is known only if a line ends in it or has a comment after it.
        let text = String::from_utf8_lossy(&bytes);
        let encoded = STANDARD.encode(&offered);
        let is_named = text
            .lines()
            .any(|line| !line.starts_with('@') && line.split_whitespace().nth(2) == Some(encoded.as_str()));
        assert!(is_named || !is_known, "{text}");
        Ok(is_known)
    });
}

#[test]
fn a_pattern_with_many_asterisks_is_decided_at_once() {
    let text = "a".repeat(200);
    assert!(fits("*a".repeat(100).as_bytes(), text.as_bytes()));
    assert!(!fits(format!("{}b", "*a".repeat(100)).as_bytes(), text.as_bytes()));
}

#[test]
fn a_key_that_is_revoked_on_the_default_port_is_refused_on_every_port() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("known_hosts");
    let [key, ..] = keys();
    let encoded = STANDARD.encode(&key);
    let revoked = format!("@revoked node1 ssh-ed25519 {encoded}\n");
    let text = format!("node1 ssh-ed25519 {encoded}\n{revoked}");
    for text in [&revoked, &text] {
        fs::write(&path, text).unwrap();
        let config = config(2222, HostKeyPolicy::AcceptNew, &path);
        let error = KnownHosts::read(&config).unwrap().verify(&key).unwrap_err();
        assert!(error.to_string().contains("marked as revoked"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), *text);
    }
    // Revoked after the file was read for this connection.
    fs::write(&path, "").unwrap();
    let config = config(2222, HostKeyPolicy::AcceptNew, &path);
    let known = KnownHosts::read(&config).unwrap();
    fs::write(&path, &revoked).unwrap();
    let error = known.verify(&key).unwrap_err();
    assert!(error.to_string().contains("marked as revoked"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), revoked);
}

#[test]
fn the_type_of_a_learnt_key_adds_no_other_text_to_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("known_hosts");
    let config = config(22, HostKeyPolicy::AcceptNew, &path);
    let offered = blob("x\nnode2 ssh-ed25519 AAAA", 1);
    KnownHosts::read(&config).unwrap().verify(&offered).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text, format!("node1 unknown {}\n", STANDARD.encode(&offered)));
}
