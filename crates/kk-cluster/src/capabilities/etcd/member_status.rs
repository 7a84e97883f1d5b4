//! Reads the status that a member reports about itself.

use kk_config::{Host, Spec};
use kk_connector::quote;
use kk_engine::Question;
use serde::{Deserialize, Serialize};

use super::etcdctl::{ask_member, certificate};

/// A member of etcd as it describes itself (etcd, `api/etcdserverpb/rpc.proto`, `StatusResponse`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemberDetail {
    /// The id of its cluster in hexadecimal, which is the same for all members, unless one was left out of a restore.
    pub cluster: String,
    /// The version of etcd, such as `3.6.16`.
    pub version: String,
    /// Whether it is the leader.
    pub leader: bool,
    /// Whether it has no vote yet.
    pub learner: bool,
    /// The size of its database on disk, in bytes.
    pub db_bytes: u64,
    /// The bytes of the database that are in use; a defragmentation frees the rest.
    pub db_bytes_in_use: u64,
    /// The revision of the history of objects.
    pub revision: u64,
    /// Alarms, such as the alarm of a full database.
    pub errors: Vec<String>,
}

/// The status of the member of a host.
pub(crate) const STATUS: Question<MemberDetail> = Question::new("etcd_status", "", parse);

/// The question for one host.
pub(crate) fn question(spec: &Spec, host: &Host) -> Question<MemberDetail> {
    STATUS.with_snippet(ask_member(spec, host) + " --command-timeout 5s endpoint status -w json")
}

/// The same, but without waiting where there can be no member.
pub(super) fn question_if_installed(spec: &Spec, host: &Host) -> Question<MemberDetail> {
    let key = format!("{}-key.pem", certificate(host));
    let ask = ask_member(spec, host) + " --command-timeout 2s endpoint status -w json";
    STATUS.with_snippet(format!("[ ! -e {} ] || {ask}", quote(&key)))
}

fn parse(printed: &str) -> Option<MemberDetail> {
    #[derive(Deserialize)]
    struct Member {
        #[serde(rename = "Status")]
        status: Answer,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Answer {
        header: Header,
        version: String,
        leader: u64,
        #[serde(default)]
        is_learner: bool,
        db_size: u64,
        #[serde(default)]
        db_size_in_use: u64,
        #[serde(default)]
        errors: Vec<String>,
    }
    #[derive(Deserialize)]
    struct Header {
        cluster_id: u64,
        member_id: u64,
        revision: u64,
    }
    let members: Vec<Member> = serde_json::from_str(printed).ok()?;
    let [Member { status }] = <[Member; 1]>::try_from(members).ok()?;
    Some(MemberDetail {
        cluster: format!("{:x}", status.header.cluster_id),
        leader: status.leader == status.header.member_id,
        version: status.version,
        learner: status.is_learner,
        db_bytes: status.db_size,
        db_bytes_in_use: status.db_size_in_use,
        revision: status.header.revision,
        errors: status.errors,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_describes_itself() {
        let printed = r#"[{"Endpoint":"https://127.0.0.1:2379","Status":{"header":{"cluster_id":1,"member_id":7,"revision":42,"raft_term":3},"version":"3.6.16","dbSize":2048,"leader":7,"raftIndex":9,"raftTerm":3,"raftAppliedIndex":9,"dbSizeInUse":1024,"errors":["memberID:7 alarm:NOSPACE "],"storageVersion":"3.6.0"}}]"#;
        let member = parse(printed).unwrap();
        assert!(member.leader && !member.learner && member.cluster == "1");
        assert_eq!((member.db_bytes, member.db_bytes_in_use, member.revision), (2048, 1024, 42));
        assert_eq!(member.errors, ["memberID:7 alarm:NOSPACE "]);
        let follower = parse(&printed.replace("\"leader\":7", "\"leader\":8,\"isLearner\":true")).unwrap();
        assert!(!follower.leader && follower.learner);
        for no_answer in ["", "[]", "[{}]", "context deadline exceeded"] {
            assert_eq!(parse(no_answer), None, "{no_answer}");
        }
    }
}
