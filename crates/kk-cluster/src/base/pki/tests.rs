//! The PKI of etcd, saved, spoilt and opened again.

use std::{collections::BTreeSet, fs, os::unix::fs::PermissionsExt, path::Path};

use kk_config::{Secret, Spec};
use rcgen::{Issuer, KeyPair};
use time::{Duration, OffsetDateTime};

use super::{
    ETCD_CLIENT, ETCD_MEMBER, Pair, Pki,
    pair::belong_together,
    params::{VALID_DAYS, member_params},
};

fn spec() -> Spec {
    Spec::all_in_one("node1", std::net::Ipv4Addr::new(10, 0, 0, 1), kk_config::KubeVersion::default())
        .unwrap()
}

#[test]
fn what_was_saved_is_found_again() {
    let (directory, spec) = (tempfile::tempdir().unwrap(), spec());
    let path = directory.path().join("pki/etcd");
    let first = Pki::open(&path, &spec.etcd_hosts(), &spec.control_planes(), None, &BTreeSet::new()).unwrap();
    assert!(!path.exists() && !first.is_saved(), "opening writes nothing");
    first.save().unwrap();
    let again = Pki::open(&path, &spec.etcd_hosts(), &spec.control_planes(), None, &BTreeSet::new()).unwrap();
    assert!(again.is_saved());
    assert_eq!(first.member("node1").cert, again.member("node1").cert);
    for entry in std::fs::read_dir(&path).unwrap() {
        assert_eq!(entry.unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_certificate_without_its_key_is_refused() {
    let (directory, spec) = (tempfile::tempdir().unwrap(), spec());
    Pki::open(directory.path(), &spec.etcd_hosts(), &[], None, &BTreeSet::new()).unwrap().save().unwrap();
    std::fs::remove_file(directory.path().join("ca-key.pem")).unwrap();
    let error = Pki::open(directory.path(), &spec.etcd_hosts(), &[], None, &BTreeSet::new()).err().unwrap();
    assert!(error.to_string().contains("ca.pem"), "{error}");
}

#[test]
fn a_member_certificate_carries_its_own_addresses_only() {
    let (directory, spec) = (tempfile::tempdir().unwrap(), spec());
    let pki = Pki::open(directory.path(), &spec.etcd_hosts(), &spec.control_planes(), None, &BTreeSet::new())
        .unwrap();
    let (_, pem) = x509_parser::pem::parse_x509_pem(pki.member("node1").cert.as_bytes()).unwrap();
    let cert = pem.parse_x509().unwrap();
    let names = format!("{:?}", cert.subject_alternative_name().unwrap().unwrap().value.general_names);
    assert!(names.contains("node1") && names.contains("[10, 0, 0, 1]"), "{names}");
    assert_eq!(cert.issuer().to_string(), "CN=etcd-ca");
}

#[test]
fn the_certificate_of_the_registry_is_for_each_address_at_which_kk_reaches_it() {
    let directory = tempfile::tempdir().unwrap();
    let text = "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {name: t}\nspec:\n  hosts:\n  \
        - {name: a, address: store.example, internalAddress: 10.0.0.1}\n  \
        roleGroups: {etcd: [a], control-plane: [a], worker: [a], registry: [a]}\n  \
        registry: {privateRegistry: hub.local}\n";
    let spec = crate::testing::spec(text);
    let pki = Pki::of_registry(directory.path(), &spec.own_registry().unwrap()).unwrap();
    let (_, pem) = x509_parser::pem::parse_x509_pem(pki.server().cert.as_bytes()).unwrap();
    let cert = pem.parse_x509().unwrap();
    let names = format!("{:?}", cert.subject_alternative_name().unwrap().unwrap().value.general_names);
    for name in ["store.example", "hub.local", "[10, 0, 0, 1]"] {
        assert!(names.contains(name), "{name}: {names}");
    }
}

#[test]
fn what_was_asked_for_is_made_anew_and_what_is_saved_is_still_known() {
    let (directory, spec) = (tempfile::tempdir().unwrap(), spec());
    let open = |names: &[&str]| {
        let renew = names.iter().map(|name| (*name).to_owned()).collect();
        Pki::open(directory.path(), &spec.etcd_hosts(), &spec.control_planes(), None, &renew).unwrap()
    };
    let first = open(&[]);
    assert!(first.saved_member("node1").is_none() && first.saved_client("node1").is_none());
    first.save().unwrap();
    for (name, member, client) in [(ETCD_MEMBER, true, false), (ETCD_CLIENT, false, true)] {
        let again = open(&[name]);
        assert_eq!(again.member("node1").cert != first.member("node1").cert, member, "{name}");
        assert_eq!(again.client("node1").cert != first.client("node1").cert, client, "{name}");
        assert_eq!(again.saved_member("node1"), Some(first.member("node1").cert.as_str()));
        assert_eq!(again.saved_client("node1"), Some(first.client("node1").cert.as_str()));
        let keys: Vec<&Secret> = again.keys().collect();
        for pki in [&first, &again] {
            for key in [pki.ca_key(), &pki.member("node1").key, &pki.client("node1").key] {
                assert!(keys.contains(&key), "{name}: the old keys are still in use");
            }
        }
    }
}

/// The PKI of these hosts after `spoil` changed the saved one.
fn opened_again(spec: &Spec, spoil: impl FnOnce(&Path)) -> (Pki, Pki) {
    let directory = tempfile::tempdir().unwrap();
    let open =
        |spec: &Spec| Pki::open(directory.path(), &spec.etcd_hosts(), &[], None, &BTreeSet::new()).unwrap();
    let first = open(&self::spec());
    first.save().unwrap();
    spoil(directory.path());
    let again = open(spec);
    again.save().unwrap();
    assert!(open(spec).is_saved() && open(spec).renewed().is_empty(), "what was renewed is saved");
    (first, again)
}

/// The hosts, the change of the saved files, and the expected reason.
type Case<'a> = (&'a Spec, &'a dyn Fn(&Path), &'a str);

#[test]
fn a_certificate_that_cannot_be_used_is_made_anew() {
    let mut moved = spec();
    moved.hosts[0].internal_address = std::net::Ipv4Addr::new(10, 0, 0, 2);
    let pem = |directory: &Path| directory.join("member-node1.pem");
    let resign = |directory: &Path, days: i64| {
        let read = |name| fs::read_to_string(directory.join(name)).unwrap();
        let issuer =
            Issuer::from_ca_cert_pem(&read("ca.pem"), KeyPair::from_pem(&read("ca-key.pem")).unwrap())
                .unwrap();
        let mut params = member_params(&spec().hosts[0]).unwrap();
        params.not_after = OffsetDateTime::now_utc() + Duration::days(days);
        params.not_before = params.not_after - Duration::days(VALID_DAYS);
        let key = KeyPair::from_pem(&read("member-node1-key.pem")).unwrap();
        fs::write(pem(directory), params.signed_by(&key, &issuer).unwrap().pem()).unwrap();
    };
    let cases: [Case<'_>; 6] = [
        (&spec(), &|_| {}, ""),
        (&spec(), &|directory| resign(directory, 31), ""),
        (&spec(), &|directory| resign(directory, 29), "expires on "),
        (&spec(), &|directory| resign(directory, -1), "has expired on "),
        (&moved, &|_| {}, "is for other names or addresses"),
        (
            &spec(),
            // Killed after the key of a new certificate was written.
            &|directory| {
                let key = KeyPair::generate().unwrap().serialize_pem();
                fs::write(directory.join("member-node1-key.pem"), key).unwrap();
            },
            "has another key",
        ),
    ];
    for (spec, spoil, why) in cases {
        let (first, again) = opened_again(spec, spoil);
        let found = again.renewed().get("member-node1").cloned().unwrap_or_default();
        assert!(found.starts_with(why) && found.is_empty() == why.is_empty(), "{found} instead of {why}");
        assert!(belong_together(again.member("node1")));
        assert_eq!(first.ca_sum(), again.ca_sum());
    }
}

#[test]
fn a_machine_that_has_lost_the_key_of_the_ca_takes_that_of_a_host_with_the_same_ca() {
    let (directory, spec) = (tempfile::tempdir().unwrap(), spec());
    let open = |copy| Pki::open(directory.path(), &spec.etcd_hosts(), &[], copy, &BTreeSet::new());
    let first = open(None).unwrap();
    first.save().unwrap();
    let key = directory.path().join("ca-key.pem");
    let was = fs::read_to_string(&key).unwrap();
    fs::remove_file(&key).unwrap();
    assert!(!Pki::has_ca(directory.path()));
    let elsewhere = tempfile::tempdir().unwrap();
    let other = Pki::open(elsewhere.path(), &[], &[], None, &BTreeSet::new()).unwrap();
    assert!(open(Some(other.ca.clone())).is_err(), "the CA of another cluster");
    let again = open(Some(first.ca.clone())).unwrap();
    assert!(again.is_copy() && again.ca_sum() == first.ca_sum());
    again.save().unwrap();
    assert_eq!(fs::read_to_string(&key).unwrap(), was);
}

#[test]
fn a_machine_without_the_ca_takes_the_copy_of_a_host() {
    let (lost, found) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let first = Pki::open(lost.path(), &[], &[], None, &BTreeSet::new()).unwrap();
    let again = Pki::open(found.path(), &[], &[], Some(first.ca.clone()), &BTreeSet::new()).unwrap();
    assert!(again.ca_sum() == first.ca_sum() && !again.is_saved() && again.is_copy());
    again.save().unwrap();
    let other = Pki::open(lost.path(), &[], &[], None, &BTreeSet::new()).unwrap();
    let own = Pki::open(found.path(), &[], &[], Some(other.ca), &BTreeSet::new()).unwrap();
    assert!(own.ca_sum() == first.ca_sum() && own.is_saved() && !own.is_copy(), "its own comes first");
    let torn = Pair { key: other_key(), ..first.ca };
    assert!(Pki::open(lost.path(), &[], &[], Some(torn), &BTreeSet::new()).is_err());
}

fn other_key() -> Secret {
    Secret::new(KeyPair::generate().unwrap().serialize_pem())
}
