//! Determines to which member of which etcd cluster the data on a host belongs. Data of a removed member, or of a cluster that
//! the other members have left by a restore, never works again: the member has to join again.

use std::collections::BTreeSet;

use kk_config::Host;
use kk_connector::quote;
use kk_engine::{Facts, Question};
use serde::Deserialize;

use super::{
    etcdctl::{ask_member, certificate},
    health::is_healthy,
    membership::healthy,
};
use crate::{
    base::{findings::Findings, shell::script},
    model::inputs::Inputs,
};

/// A member of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    member: u64,
    cluster: u64,
}

/// The identity that the data of a host contains. It is read from the disk, because a removed member exits as soon as it has
/// started.
pub(crate) const IDENTITY: Question<Identity> = Question::new("etcd_identity", "", parse_log);

/// A cluster and its members, as one of the members knows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Members {
    cluster: u64,
    members: BTreeSet<u64>,
}

/// The member list that the member of a host reports.
pub(crate) const MEMBERS: Question<Members> = Question::new("etcd_members", "", parse_members);

pub(super) fn identity_question(inputs: &Inputs) -> Question<Identity> {
    let data = [("data", inputs.spec.etcd.data_dir.as_str())];
    IDENTITY.with_snippet(script(&data, include_str!("identity.sh")))
}

pub(super) fn members_question(inputs: &Inputs, host: &Host) -> Question<Members> {
    let key = format!("{}-key.pem", certificate(host));
    let ask = ask_member(inputs.spec, host) + " --command-timeout 2s member list -w json";
    MEMBERS.with_snippet(format!("[ ! -e {} ] || {ask}", quote(&key)))
}

fn parse_members(printed: &str) -> Option<Members> {
    #[derive(Deserialize)]
    struct List {
        header: Header,
        members: Vec<Member>,
    }
    #[derive(Deserialize)]
    struct Header {
        cluster_id: u64,
    }
    #[derive(Deserialize)]
    struct Member {
        #[serde(rename = "ID")]
        id: u64,
    }
    let list: List = serde_json::from_str(printed).ok()?;
    let members = list.members.into_iter().map(|member| member.id).collect();
    Some(Members { cluster: list.header.cluster_id, members })
}

/// Reads the head of a log (etcd, `server/storage/wal`). It consists of records, each after its length; the first record that is
/// not a checksum contains the ids. A log in another format yields no ids.
fn parse_log(printed: &str) -> Option<Identity> {
    let bytes: Result<Vec<u8>, _> =
        printed.split_ascii_whitespace().map(|byte| u8::from_str_radix(byte, 16)).collect();
    read_log(&bytes.ok()?)
}

fn read_log(mut rest: &[u8]) -> Option<Identity> {
    const METADATA: u64 = 1;
    const CHECKSUM: u64 = 4;
    loop {
        let (frame, behind) = rest.split_first_chunk::<8>()?;
        let frame = u64::from_le_bytes(*frame);
        // The highest byte contains the number of padding bytes after the record, if there are any.
        let (length, top) = (usize::try_from(frame & 0x00ff_ffff_ffff_ffff).ok()?, frame >> 56);
        let padding = if top & 0x80 == 0 { 0 } else { usize::try_from(top & 0x7).ok()? };
        let (record, behind) = behind.split_at_checked(length)?;
        match (number(record, 1)?, bytes(record, 3)) {
            (CHECKSUM, _) => rest = behind.get(padding..)?,
            (METADATA, Some(data)) => {
                return Some(Identity { member: number(data, 1)?, cluster: number(data, 2)? });
            }
            _ => return None,
        }
    }
}

/// A value in a message of protocol buffers.
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The last value of a field. `None` if the field is missing, or if the message is broken or contains a value of another kind.
fn field(mut message: &[u8], wanted: u64) -> Option<Value<'_>> {
    let mut found = None;
    while !message.is_empty() {
        let key = varint(&mut message)?;
        let value = match key & 7 {
            0 => Value::Number(varint(&mut message)?),
            2 => {
                let length = usize::try_from(varint(&mut message)?).ok()?;
                let (value, behind) = message.split_at_checked(length)?;
                message = behind;
                Value::Bytes(value)
            }
            _ => return None,
        };
        if key >> 3 == wanted {
            found = Some(value);
        }
    }
    found
}

fn number(message: &[u8], wanted: u64) -> Option<u64> {
    match field(message, wanted)? {
        Value::Number(number) => Some(number),
        Value::Bytes(_) => None,
    }
}

fn bytes(message: &[u8], wanted: u64) -> Option<&[u8]> {
    match field(message, wanted)? {
        Value::Bytes(bytes) => Some(bytes),
        Value::Number(_) => None,
    }
}

fn varint(message: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, behind) = message.split_first()?;
        *message = behind;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Why the data of a host is unusable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stranger {
    /// The member list no longer contains its member.
    Removed,
    /// Its cluster is not the cluster of the other members.
    OtherCluster,
}

/// Whether, and why, the data of a host belongs to no member of the working cluster. The data of a healthy member is always
/// valid.
pub(super) fn stranger(inputs: &Inputs, facts: &Facts) -> Option<Stranger> {
    let own = facts.answer(&IDENTITY).answered().filter(|_| !is_healthy(facts))?;
    let known = clusters(inputs);
    let first = known.first()?.1.cluster;
    if known.iter().any(|(_, list)| list.cluster != first) {
        return None;
    }
    if own.cluster != first {
        Some(Stranger::OtherCluster)
    } else if known.iter().any(|(_, list)| list.members.contains(&own.member)) {
        None
    } else {
        Some(Stranger::Removed)
    }
}

/// The cluster and the members that each healthy member reports.
fn clusters<'a>(inputs: &Inputs<'a>) -> Vec<(&'a Host, Members)> {
    let list = |host: &'a Host| Some((host, inputs.facts(host)?.answer(&MEMBERS).answered()?));
    healthy(inputs).into_iter().filter_map(list).collect()
}

/// Reports healthy members of different clusters. Only the operator can decide which cluster is the right one.
pub(super) fn findings(inputs: &Inputs, found: &mut Findings) {
    let known = clusters(inputs);
    let Some((_, first)) = known.first() else { return };
    if known.iter().all(|(_, list)| list.cluster == first.cluster) {
        return;
    }
    let member = |(host, list): &(&Host, Members)| format!("{} of {:x}", host.name, list.cluster);
    let members = known.iter().map(member).collect::<Vec<_>>().join(", ");
    found.error(
        None,
        format!("the healthy members of etcd belong to different clusters: {members}"),
        "stop etcd on the hosts that were left out of a restore (systemctl stop etcd); then kk create cluster joins them again",
    );
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::testing;

    /// A log of etcd 3.6, printed by `head -c 160 FILE | od -An -v -tx1`.
    const LOG: &str = " 04 00 00 00 00 00 00 84 08 04 10 00 00 00 00 00\n 20 00 00 00 00 00 00 00 08 01 10 ea 82 e4 f4 03\n \
                       1a 16 08 8d f2 f4 8e c1 f7 a6 d7 bd 01 10 f3 c3\n a6 c6 91 b0 a1 95 ad 01 0e 00 00 00 00 00 00 82\n";
    const OWN: Identity = Identity { member: 0xbdae_9bbc_11dd_390d, cluster: 12_477_932_507_096_523_251 };

    #[test]
    fn the_log_names_its_member_and_its_cluster() {
        assert_eq!(parse_log(LOG), Some(OWN));
        let cut = &LOG[..LOG.len() - 75];
        let other = LOG.replacen("08 01 10", "08 02 10", 1);
        for no_log in ["", "zz", "00", cut, &other, &"ff ".repeat(160), &"00 ".repeat(160)] {
            assert_eq!(parse_log(no_log), None, "{no_log}");
        }
    }

    #[test]
    fn the_first_log_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let read = || {
            let data = directory.path().display().to_string();
            let text = script(&[("data", &data)], include_str!("identity.sh"));
            let output = testing::run_script(directory.path(), &text);
            assert!(output.status.success());
            String::from_utf8(output.stdout).unwrap()
        };
        assert_eq!(read(), "");
        let wal = directory.path().join("member/wal");
        fs::create_dir_all(&wal).unwrap();
        fs::write(wal.join("0.tmp"), "no log").unwrap();
        assert_eq!(read(), "");
        let bytes: Vec<u8> =
            LOG.split_ascii_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
        fs::write(wal.join("0000000000000000-0000000000000000.wal"), bytes).unwrap();
        fs::write(wal.join("0000000000000001-0000000000000009.wal"), "later").unwrap();
        assert_eq!(parse_log(&read()), Some(OWN));
    }

    #[test]
    fn a_list_of_members_is_read() {
        let printed = r#"{"header":{"cluster_id":12477932507096523251,"member_id":13668033151171901709,"raft_term":2},"members":[{"ID":185828541645115251,"name":"b","peerURLs":["http://b:2380"],"clientURLs":["http://b:2379"]},{"ID":13668033151171901709,"name":"a"}]}"#;
        let list = parse_members(printed).unwrap();
        assert_eq!(list.cluster, OWN.cluster);
        assert_eq!(list.members, [185_828_541_645_115_251, OWN.member].into());
        for no_list in ["", "{}", "context deadline exceeded"] {
            assert_eq!(parse_members(no_list), None);
        }
    }
}
