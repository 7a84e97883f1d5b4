//! Reads the CA of etcd from the hosts of etcd, for a control machine that lost its copy or never had one.

use std::{collections::BTreeMap, sync::Arc};

use kk_config::{Secret, Spec};
use kk_connector::Connection;

use crate::base::{
    error::BuildError,
    host_layout::{ETCD_CA, ETCD_CA_KEY},
    pki::Pair,
    probed::Probed,
};

/// Largest file, in bytes, that is accepted as a certificate or a key.
const LIMIT: u64 = 1 << 16;

/// Reads the pair from the first host of etcd whose record names this cluster and the CA on that host. `None` if there is no such
/// host.
pub(crate) async fn read(
    spec: &Spec,
    probed: &Probed,
    connections: &BTreeMap<String, Arc<dyn Connection>>,
) -> Result<Option<Pair>, BuildError> {
    let holds = |name: &str| {
        let facts = probed.facts.get(name)?;
        let (identity, ca) = (facts.owned.identity()?, facts.files.get(ETCD_CA)?);
        let is_ours = identity.cluster == spec.name && identity.ca_sha256 == ca.sha256;
        (is_ours && facts.files.contains_key(ETCD_CA_KEY)).then_some(())
    };
    let Some(host) = spec.etcd_hosts().into_iter().find(|host| holds(&host.name).is_some()) else {
        return Ok(None);
    };
    let read = async |path: &str| {
        let cannot = |why: &dyn std::fmt::Display| {
            BuildError::local(
                format!(
                    "the control machine has no CA of etcd, and cannot read {path} of {}: {why}",
                    host.name
                ),
                "run again when the host is reachable, or copy kubekey/<cluster>/pki from the machine that created the cluster",
            )
        };
        let bytes = connections[&host.name].download(path, LIMIT).await.map_err(|error| cannot(&error))?;
        String::from_utf8(bytes).map_err(|error| cannot(&error))
    };
    let (cert, key) = (read(ETCD_CA).await?, read(ETCD_CA_KEY).await?);
    Ok(Some(Pair { cert, key: Secret::new(key) }))
}

#[cfg(test)]
mod tests {
    use kk_connector::FakeHost;
    use kk_engine::FileFact;

    use super::*;
    use crate::testing;

    #[tokio::test]
    async fn only_a_host_of_this_cluster_and_ca_is_believed() {
        let spec = testing::sample("all-in-one.yaml");
        let host = spec.etcd_hosts()[0].name.clone();
        let fake =
            FakeHost::new(&host).with_file(ETCD_CA, "cert", 0o644).with_file(ETCD_CA_KEY, "key", 0o600);
        let connections = BTreeMap::from([(host.clone(), Arc::new(fake) as Arc<dyn Connection>)]);
        for (record, key, found) in [
            (format!("cluster\t{}\tsum\t-", spec.name), true, true),
            (format!("cluster\t{}\tsum\t-", spec.name), false, false),
            (format!("cluster\t{}\tanother\t-", spec.name), true, false),
            ("cluster\tanother\tsum\t-".to_owned(), true, false),
            ("made\t/etc/etcd.env".to_owned(), true, false),
        ] {
            let mut probed = testing::fresh(&spec);
            let facts = probed.facts.get_mut(&host).unwrap();
            facts.owned = vec![record.clone()].into();
            let file = FileFact { sha256: "sum".into(), ..FileFact::default() };
            facts.files.insert(ETCD_CA.into(), file.clone());
            if key {
                facts.files.insert(ETCD_CA_KEY.into(), file);
            }
            let pair = read(&spec, &probed, &connections).await.unwrap();
            assert_eq!(pair.map(|pair| pair.cert), found.then(|| "cert".to_owned()), "{record} {key}");
        }
    }
}
