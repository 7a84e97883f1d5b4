//! Reads from a snapshot the data that identifies its cluster. This happens on the control machine, because the binaries of etcd
//! on the hosts only summarise a snapshot, and reading its keys would require a running member.

mod bolt;
#[cfg(test)]
mod fuzz;
mod protobuf;

use std::{fs::File, io};

use bolt::Bolt;

/// The length of the checksum at the end of a snapshot, in bytes.
pub(super) const CHECKSUM: u64 = 32;
/// The bucket with the history of all keys (etcd, `server/storage/schema/bucket.go`). A key in it is a revision; a longer key
/// means that the key of etcd was deleted (`server/storage/mvcc/revision.go`).
const HISTORY: &[u8] = b"key";
const REVISION: usize = 17;
const NAMESPACE: &[u8] = b"/registry/namespaces/kube-system";
const CA: &[u8] = b"/registry/configmaps/kube-system/kube-root-ca.crt";
/// The prefix of an object in protobuf (apimachinery, `pkg/runtime/serializer/protobuf`).
const OBJECT: &[u8] = b"k8s\0";

/// The data of a snapshot by which clusters are distinguished. The UID and the CA are missing if the API server encrypts these
/// objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Content {
    /// The last revision.
    pub(crate) revision: u64,
    /// Whether it has a namespace kube-system.
    pub(crate) is_kubernetes: bool,
    /// The UID of that namespace, which differs between clusters.
    pub(crate) uid: Option<String>,
    /// The SHA-256 of the file with the CA of the cluster.
    pub(crate) ca: Option<String>,
}

/// Reads the data from the file of a snapshot.
pub(super) fn read(file: &File, size: u64) -> io::Result<Content> {
    let bolt = Bolt::open(file, size.saturating_sub(CHECKSUM))?;
    let mut content = Content::default();
    let (mut namespace, mut ca) = (None, None);
    bolt.each(HISTORY, &mut |revision, value| {
        let number = revision.get(..8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes);
        content.revision = content.revision.max(number.unwrap_or_default());
        // Only the last change of a key counts.
        let place = match protobuf::bytes(value, 1) {
            Some(NAMESPACE) => &mut namespace,
            Some(CA) => &mut ca,
            _ => return Ok(()),
        };
        let is_deleted = revision.len() > REVISION;
        *place = (!is_deleted).then(|| protobuf::bytes(value, 5).unwrap_or_default().to_vec());
        Ok(())
    })?;
    content.is_kubernetes = namespace.is_some();
    content.uid = namespace.as_deref().and_then(uid);
    content.ca = ca.as_deref().and_then(ca_certificate).map(kk_util::sha256);
    Ok(content)
}

/// The UID in `metav1.ObjectMeta`, the first field of every object.
fn uid(value: &[u8]) -> Option<String> {
    let uid = protobuf::bytes(protobuf::bytes(object(value)?, 1)?, 5)?;
    String::from_utf8(uid.to_vec()).ok()
}

/// The CA in the data of a `ConfigMap`.
fn ca_certificate(value: &[u8]) -> Option<&[u8]> {
    let data = protobuf::fields(object(value)?).filter(|(number, _)| *number == 2);
    let mut named = data.filter(|(_, entry)| protobuf::bytes(entry, 1) == Some(b"ca.crt"));
    named.find_map(|(_, entry)| protobuf::bytes(entry, 2))
}

/// The `raw` of `runtime.Unknown`.
fn object(value: &[u8]) -> Option<&[u8]> {
    protobuf::bytes(value.strip_prefix(OBJECT)?, 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(name: &str) -> (File, u64) {
        let path = format!("{}/src/capabilities/etcd_restore/content/{name}", env!("CARGO_MANIFEST_DIR"));
        let file = File::open(path).unwrap();
        let size = file.metadata().unwrap().len();
        (file, size)
    }

    /// The snapshot was saved by etcdctl 3.6.16. Both objects were written twice, among 60 other objects.
    #[test]
    fn a_snapshot_says_of_which_cluster_it_is() {
        let (file, size) = open("snapshot.db");
        let content = read(&file, size).unwrap();
        let wanted = Content {
            revision: 65,
            is_kubernetes: true,
            uid: Some("11111111-2222-3333-4444-555555555555".into()),
            ca: Some(kk_util::sha256("the CA of the cluster\n")),
        };
        assert_eq!(content, wanted);
    }

    #[test]
    fn a_deleted_object_is_not_there() {
        let (file, size) = open("deleted.db");
        assert_eq!(read(&file, size).unwrap(), Content { revision: 67, ..Content::default() });
    }

    #[test]
    fn damage_is_an_error_and_never_a_panic() {
        let whole = std::fs::read(format!(
            "{}/src/capabilities/etcd_restore/content/snapshot.db",
            env!("CARGO_MANIFEST_DIR")
        ))
        .unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("damaged.db");
        let read_bytes = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            read(&File::open(&path).unwrap(), bytes.len() as u64)
        };
        assert!(read_bytes(b"").is_err() && read_bytes(&[0; 9000]).is_err());
        assert!(read_bytes(&whole[..whole.len() / 2]).is_err());
        for at in (0..whole.len()).step_by(97) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            drop(read_bytes(&damaged));
        }
    }
}
