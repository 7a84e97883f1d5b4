//! Keeps the new CAs on the control machine, in `kubekey/<cluster>/pki/rotation`, until the new CA of etcd replaces the old one.
//! New CAs are created in memory; only [`Authorities::save`] writes them.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use kk_config::{Secret, Spec};

use crate::base::{
    error::BuildError,
    pki::{Pair, Pki},
};

/// Names of the user's CAs: their paths in a directory like `/etc/kubernetes/pki`.
const CLUSTER: &str = "ca";
const FRONT_PROXY: &str = "front-proxy-ca";
const ETCD: &str = "etcd/ca";

/// The new CAs, and the certificates that they have issued and kubeadm does not issue.
pub struct Authorities {
    /// `kubekey/<cluster>/pki`.
    directory: PathBuf,
    /// The CA of the cluster, and the certificates of kubelets.
    pub(super) cluster: Arc<Pki>,
    /// The CA of the front proxy.
    pub(super) front_proxy: Arc<Pki>,
    /// The CA of etcd, with the certificates of members and API servers.
    pub(super) etcd: Arc<Pki>,
}

impl Authorities {
    /// Opens the CAs of a rotation that has begun. Otherwise uses the user's CAs in `own`, and creates the CAs that are missing
    /// there.
    pub(crate) fn open(directory: &Path, spec: &Spec, own: Option<&Path>) -> Result<Self, BuildError> {
        let place = |name: &str| directory.join("rotation").join(name);
        let of_etcd = if is_taken(directory) { directory.join("etcd") } else { place("etcd") };
        let read = |name| own.map(|own| read_own(own, name)).transpose().map(Option::flatten);
        let (cluster, front_proxy, etcd) = (read(CLUSTER)?, read(FRONT_PROXY)?, read(ETCD)?);
        if own.is_some() && cluster.is_none() && front_proxy.is_none() && etcd.is_none() {
            return Err(BuildError::config(
                format!("{} has no CA", own.unwrap_or(directory).display()),
                format!(
                    "it may contain {CLUSTER}.crt, {FRONT_PROXY}.crt and {ETCD}.crt, each with its key, \
                     such as {CLUSTER}.key"
                ),
            ));
        }
        let nothing = BTreeSet::new();
        let opened = Self {
            directory: directory.to_owned(),
            cluster: Arc::new(Pki::of_kubernetes(&place("cluster"), cluster.clone(), &spec.nodes())?),
            front_proxy: Arc::new(Pki::of_front_proxy(&place("front-proxy"), front_proxy.clone())?),
            etcd: Arc::new(Pki::open(
                &of_etcd,
                &spec.etcd_hosts(),
                &spec.control_planes(),
                etcd.clone(),
                &nothing,
            )?),
        };
        let kinds = [(&opened.cluster, cluster), (&opened.front_proxy, front_proxy), (&opened.etcd, etcd)];
        for (pki, own) in kinds {
            if own.is_some_and(|own| own.cert != pki.ca_cert()) {
                return Err(BuildError::config(
                    format!(
                        "the rotation was started with another CA, which is in {}",
                        pki.directory().display()
                    ),
                    "run again without --ca-dir; afterwards another rotation can use your CA",
                ));
            }
        }
        Ok(opened)
    }

    /// All private keys, which no message may show.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Secret> {
        [&self.cluster, &self.front_proxy, &self.etcd].into_iter().flat_map(|pki| pki.keys())
    }

    /// Whether the new CA of etcd has replaced the old one: all rounds have ended.
    pub(super) fn are_in_use(&self) -> bool {
        is_taken(&self.directory)
    }

    /// The SHA-256 of the CA certificate of the cluster.
    pub(crate) fn cluster_sum(&self) -> String {
        self.cluster.ca_sum()
    }

    /// The directory of the new CAs on the control machine.
    pub(super) fn directory(&self) -> PathBuf {
        self.directory.join("rotation")
    }

    /// Whether this rotation knows the CA of etcd that has this SHA-256.
    pub(crate) fn knows(&self, sum: &str) -> bool {
        let cluster = self.directory.parent().unwrap_or(&self.directory);
        self.etcd.ca_sum() == sum || crate::base::questions::ca_rotation::etcd_cas(cluster).contains(sum)
    }

    /// Whether all CAs of the rotation are on the control machine. A CA that hosts already trust must not be created again.
    pub(super) fn are_on_disk(&self) -> bool {
        [&self.cluster, &self.front_proxy, &self.etcd].into_iter().all(|pki| Pki::has_ca(pki.directory()))
    }

    pub(super) fn is_saved(&self) -> bool {
        [&self.cluster, &self.front_proxy, &self.etcd].into_iter().all(|pki| pki.is_saved())
    }

    pub(crate) fn save(&self) -> Result<(), BuildError> {
        [&self.cluster, &self.front_proxy, &self.etcd].into_iter().try_for_each(|pki| pki.save())
    }

    /// Replaces the old CA of etcd, and the certificates that it has issued, by the new CA and its certificates.
    pub(super) fn take_place(&self) -> io::Result<()> {
        let (place, new, before) =
            (self.directory.join("etcd"), self.directory().join("etcd"), self.before());
        if !before.exists() {
            fs::rename(&place, &before)?;
        }
        // A killed run may have done only the first step.
        if new.exists() { fs::rename(&new, &place) } else { Ok(()) }
    }

    fn before(&self) -> PathBuf {
        self.directory.join("rotation/etcd-before")
    }
}

fn is_taken(directory: &Path) -> bool {
    let rotation = directory.join("rotation");
    rotation.join("etcd-before").exists() && !rotation.join("etcd").exists()
}

fn read_own(directory: &Path, name: &str) -> Result<Option<Pair>, BuildError> {
    let [cert, key] = ["crt", "key"].map(|kind| directory.join(format!("{name}.{kind}")));
    let read = |path: &Path| match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text.trim_end().to_owned() + "\n")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(BuildError::config(
            format!("cannot read {}: {error}", path.display()),
            "specify a file that this user can read",
        )),
    };
    let pair = match (read(&cert)?, read(&key)?) {
        (Some(cert), Some(key)) => Pair { cert, key: Secret::new(key) },
        (None, None) => return Ok(None),
        (Some(_), None) => return Err(missing(&key)),
        (None, Some(_)) => return Err(missing(&cert)),
    };
    match pair.trouble_as_ca() {
        None => Ok(Some(pair)),
        Some(why) => Err(BuildError::config(
            format!("{} cannot be a CA of the cluster: {why}", cert.display()),
            "provide one CA certificate that is valid for more than a year, and its key as unencrypted \
             PKCS#8 (BEGIN PRIVATE KEY)",
        )),
    }
}

fn missing(path: &Path) -> BuildError {
    BuildError::config(
        format!("{} is missing", path.display()),
        "kk needs the certificate of a CA and its key",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn open(directory: &Path, own: Option<&Path>) -> Result<Authorities, String> {
        let spec = testing::sample("three-nodes.yaml");
        Authorities::open(directory, &spec, own).map_err(|error| error.to_string())
    }

    #[test]
    fn what_was_begun_is_taken_up_until_it_is_in_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let (path, spec) = (&directory.path().join("pki"), testing::sample("three-nodes.yaml"));
        let nothing = BTreeSet::new();
        let old = || Pki::open(&path.join("etcd"), &spec.etcd_hosts(), &[], None, &nothing).unwrap();
        old().save().unwrap();
        let before = old().ca_sum();
        let first = open(path, None).unwrap();
        assert!(!first.directory().exists() && !first.is_saved(), "opening writes nothing");
        first.save().unwrap();
        let again = open(path, None).unwrap();
        let sums = |of: &Authorities| [&of.cluster, &of.front_proxy, &of.etcd].map(|pki| pki.ca_sum());
        assert!(again.is_saved() && !again.are_in_use());
        assert_eq!(sums(&again), sums(&first));
        let lost = again.front_proxy.directory().join("ca.pem");
        let kept = fs::read(&lost).unwrap();
        fs::remove_file(&lost).unwrap();
        assert!(!open(path, None).unwrap().are_on_disk(), "one is lost");
        fs::write(&lost, kept).unwrap();
        assert!(open(path, None).unwrap().are_on_disk());
        assert!(!sums(&first).contains(&before));
        // The run is killed between the two steps, and then run again.
        fs::rename(path.join("etcd"), again.before()).unwrap();
        let killed = open(path, None).unwrap();
        assert!(!killed.are_in_use() && killed.knows(&before) && killed.knows(&first.etcd.ca_sum()));
        killed.take_place().unwrap();
        let ended = open(path, None).unwrap();
        assert!(ended.are_in_use() && sums(&ended) == sums(&first) && old().ca_sum() == first.etcd.ca_sum());
        ended.take_place().unwrap();
        assert_eq!(old().ca_sum(), first.etcd.ca_sum());
    }

    #[test]
    fn cas_of_the_users_own_are_taken_or_refused_with_the_reason() {
        let directory = tempfile::tempdir().unwrap();
        let (own, path) = (directory.path().join("own"), directory.path().join("pki"));
        fs::create_dir_all(own.join("etcd")).unwrap();
        assert!(open(&path, Some(&own)).err().unwrap().contains("has no CA"));
        let made = open(&directory.path().join("another"), None).unwrap();
        fs::write(own.join("ca.crt"), made.cluster.ca_cert()).unwrap();
        assert!(open(&path, Some(&own)).err().unwrap().contains("ca.key is missing"));
        fs::write(own.join("ca.key"), made.etcd.ca_key().expose()).unwrap();
        assert!(open(&path, Some(&own)).err().unwrap().contains("the key belongs to another certificate"));
        fs::write(own.join("ca.key"), made.cluster.ca_key().expose()).unwrap();
        let opened = open(&path, Some(&own)).unwrap();
        assert_eq!(opened.cluster.ca_sum(), made.cluster.ca_sum());
        assert_ne!(opened.etcd.ca_sum(), made.etcd.ca_sum());
        open(&path, None).unwrap().save().unwrap();
        assert!(open(&path, Some(&own)).err().unwrap().contains("was started with another CA"));
        let mut short = rcgen::CertificateParams::new(Vec::new()).unwrap();
        short.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        short.not_after = time::OffsetDateTime::now_utc() + time::Duration::days(365);
        let pair = rcgen::KeyPair::generate().unwrap();
        fs::write(own.join("ca.crt"), short.self_signed(&pair).unwrap().pem()).unwrap();
        fs::write(own.join("ca.key"), pair.serialize_pem()).unwrap();
        assert!(open(&path, Some(&own)).err().unwrap().contains("it expires on"));
        let (leaf, key) = (&made.etcd.member("node1").cert, made.etcd.member("node1").key.expose());
        fs::write(own.join("ca.crt"), leaf).unwrap();
        fs::write(own.join("ca.key"), key).unwrap();
        assert!(open(&path, Some(&own)).err().unwrap().contains("it is not a CA"));
        fs::write(own.join("ca.crt"), format!("{0}{0}", made.cluster.ca_cert())).unwrap();
        assert!(open(&path, Some(&own)).err().unwrap().contains("it holds 2 certificates"));
    }
}
