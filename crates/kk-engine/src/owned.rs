//! The ownership record of a host, `/etc/kubekey/owned`: the changes that kk made there, and for which cluster.
//!
//! Written by the functions of `lib.sh`, which lists the kinds of lines; read by the probe and parsed here, once.

use serde::{Deserialize, Serialize};

/// The ownership record of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<String>", into = "Vec<String>")]
pub struct Owned {
    entries: Vec<Entry>,
    identity: Option<Identity>,
}

/// One line of the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The kind of change that it records.
    pub kind: Kind,
    /// A path, or the name of a unit, user, module, package or kernel setting.
    pub subject: String,
    /// Additional fields, as listed in `lib.sh`.
    pub details: Vec<String>,
    /// The whole line.
    pub line: String,
}

/// Kinds of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file or link that did not exist.
    Made,
    /// A file or link whose original is kept.
    Saved,
    /// A directory that did not exist.
    Dir,
    /// Previous attributes of a directory.
    Attr,
    /// A marked block in a file.
    Block,
    /// Lines of a file that were commented out.
    Marked,
    /// The previous value of a kernel setting.
    Sysctl,
    /// A kernel module that was loaded.
    Module,
    /// A unit that was enabled or started.
    UnitOn,
    /// A unit that was turned off.
    UnitOff,
    /// A user that was added.
    User,
    /// A swap device that was in use.
    Swap,
    /// A package that was installed.
    Package,
    /// A line written by another version of kk.
    Other,
}

impl Kind {
    fn of(word: &str) -> Self {
        match word {
            "made" => Self::Made,
            "saved" => Self::Saved,
            "dir" => Self::Dir,
            "attr" => Self::Attr,
            "block" => Self::Block,
            "marked" => Self::Marked,
            "sysctl" => Self::Sysctl,
            "module" => Self::Module,
            "unit-on" => Self::UnitOn,
            "unit-off" => Self::UnitOff,
            "user" => Self::User,
            "swap" => Self::Swap,
            "package" => Self::Package,
            _ => Self::Other,
        }
    }
}

/// Which cluster a host belongs to: the head line of its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Name of the cluster.
    pub cluster: String,
    /// SHA-256 of the cluster's CA.
    pub ca_sha256: String,
    /// `/etc/machine-id` of the host when the line was written. A different value means that the disk was copied.
    pub machine_id: String,
}

impl Owned {
    /// Parses the file. A last line without a newline was truncated by a power failure and is ignored.
    pub(crate) fn parse(text: &str) -> Self {
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>().into()
    }

    /// The cluster that the host belongs to, if the record contains it.
    pub fn identity(&self) -> Option<&Identity> {
        self.identity.as_ref()
    }

    /// Its lines in order, except the head line.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Whether a line of this kind concerns `subject`.
    pub fn has(&self, kind: Kind, subject: &str) -> bool {
        self.entries.iter().any(|entry| entry.kind == kind && entry.subject == subject)
    }

    /// Whether the file, link or directory was made or replaced by kk.
    pub fn owns(&self, path: &str) -> bool {
        let is_path = |kind| matches!(kind, Kind::Made | Kind::Saved | Kind::Dir);
        self.entries.iter().any(|entry| is_path(entry.kind) && entry.subject == path)
    }
}

/// Parses the lines of the file.
impl<S: Into<String>> From<Vec<S>> for Owned {
    fn from(lines: Vec<S>) -> Self {
        let mut owned = Self::default();
        for line in lines.into_iter().map(Into::into) {
            let mut fields = line.split('\t').map(str::to_owned);
            let word = fields.next().unwrap_or_default();
            let subject = fields.next().unwrap_or_default();
            let details: Vec<String> = fields.collect();
            if let ("cluster", [ca_sha256, machine_id, ..]) = (word.as_str(), details.as_slice()) {
                let (ca_sha256, machine_id) = (ca_sha256.clone(), machine_id.clone());
                owned.identity.get_or_insert(Identity { cluster: subject, ca_sha256, machine_id });
                continue;
            }
            owned.entries.push(Entry { kind: Kind::of(&word), subject, details, line });
        }
        owned
    }
}

impl From<Owned> for Vec<String> {
    fn from(owned: Owned) -> Self {
        let head = owned.identity.map(|identity| {
            format!("cluster\t{}\t{}\t{}", identity.cluster, identity.ca_sha256, identity.machine_id)
        });
        head.into_iter().chain(owned.entries.into_iter().map(|entry| entry.line)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_is_read_by_kind_and_subject_and_its_head_names_the_cluster() {
        let text = "cluster\tprod\tab12\t77aa\nmade\t/etc/a\nsaved\t/etc/b\ndir\t/opt/c\n\
                    unit-off\tdocker.service\tenabled\tactive\nfuture\tx\nmade\t/etc/cu";
        let owned = Owned::parse(text);
        let identity = owned.identity().unwrap();
        assert_eq!(
            (&*identity.cluster, &*identity.ca_sha256, &*identity.machine_id),
            ("prod", "ab12", "77aa")
        );
        assert!(["/etc/a", "/etc/b", "/opt/c"].iter().all(|path| owned.owns(path)));
        assert!(!owned.owns("/etc/cu") && !owned.owns("docker.service"));
        assert!(owned.has(Kind::UnitOff, "docker.service") && owned.has(Kind::Other, "x"));
        assert_eq!(owned.entries()[3].details, ["enabled", "active"]);
        let lines: Vec<String> = owned.into();
        assert_eq!(lines.join("\n"), text.rsplit_once('\n').unwrap().0);
    }

    #[test]
    fn a_record_without_a_head_names_no_cluster() {
        assert_eq!(Owned::from(vec!["made\t/x"]).identity(), None);
        assert_eq!(Owned::parse("").entries(), []);
    }
}
