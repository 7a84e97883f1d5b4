//! Whether the CAs of a host are being replaced.

use std::{collections::BTreeSet, path::Path};

use kk_engine::{Facts, Question};

/// The last round that ended on all hosts; 0 while the first round runs. `None` if there is no mark.
pub(crate) const STAGE: Question<Option<u8>> = Question::new(
    "ca_rotation",
    "[ ! -e /etc/kubekey/rotation ] && echo none || cat /etc/kubekey/rotation/stage 2>/dev/null || echo 0",
    |text| match text.trim() {
        "none" => Some(None),
        number => number.parse().ok().map(Some),
    },
);

/// The SHA-256 of the other CA of etcd, old or new, in a rotation that has begun on the control machine. `directory` is
/// `kubekey/<cluster>`.
pub(crate) fn etcd_cas(directory: &Path) -> BTreeSet<String> {
    let rotation = directory.join("pki/rotation");
    let read = |name| std::fs::read(rotation.join(name).join("ca.pem")).ok();
    ["etcd", "etcd-before"].into_iter().filter_map(read).map(kk_util::sha256).collect()
}

/// [`STAGE`] of a host that answered.
pub(crate) fn stage(facts: &Facts) -> Option<u8> {
    facts.answer(&STAGE).answered().flatten()
}

/// Whether a rotation has begun on the host and not ended.
pub(crate) fn is_marked(facts: &Facts) -> bool {
    stage(facts).is_some()
}
