//! The list of a repository: the file `Packages`, an entry for each package (Debian's wiki, `DebianRepository/Format`).

use std::collections::BTreeMap;

use super::apt::Deb;

/// The name of the list.
pub(crate) const LIST: &str = "Packages";

/// The control fields of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Control {
    pub(super) name: String,
    pub(super) version: String,
    /// `amd64`, `arm64` or `all`.
    arch: String,
    /// All of its fields, as written in the package.
    fields: String,
}

impl Control {
    /// Reads the fields of a package (deb-control(5)).
    pub(super) fn parse(fields: &str) -> Option<Self> {
        let entry = one_entry(fields);
        let field = |name: &str| entry.get(name).map(|text| (*text).to_owned());
        let fields = fields.trim_end().to_owned();
        Some(Self {
            name: field("Package")?,
            version: field("Version")?,
            arch: field("Architecture")?,
            fields,
        })
    }

    /// The name of its file by Debian's rules: without the epoch of the version.
    pub(super) fn file_name(&self) -> String {
        let version = self.version.split_once(':').map_or(&*self.version, |(_, version)| version);
        format!("{}_{version}_{}.deb", self.name, self.arch)
    }
}

/// Its entry in the list.
pub(super) fn entry(control: &Control, deb: &Deb) -> String {
    let Control { fields, .. } = control;
    format!("{fields}\nFilename: ./{}\nSize: {}\nSHA256: {}\n\n", control.file_name(), deb.size, deb.sum)
}

/// A package in a list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) file: String,
    pub(crate) sha256: String,
}

/// The packages of a list. `None`: an entry lacks something.
pub(crate) fn read(list: &str) -> Option<Vec<Listed>> {
    let entries = list.split("\n\n").filter(|entry| !entry.trim().is_empty());
    let listed = |entry: &str| {
        let entry = one_entry(entry);
        let field = |name: &str| entry.get(name).map(|text| (*text).to_owned());
        let file = field("Filename")?.strip_prefix("./")?.to_owned();
        Some(Listed { name: field("Package")?, version: field("Version")?, file, sha256: field("SHA256")? })
    };
    entries.map(listed).collect()
}

/// Fields of one line each. Lines that begin with a space continue the previous field.
fn one_entry(text: &str) -> BTreeMap<&str, &str> {
    let fields = text.lines().filter(|line| !line.starts_with([' ', '\t']));
    fields.filter_map(|line| line.split_once(": ")).map(|(name, value)| (name, value.trim())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: &str = "Package: less\nVersion: 2:590-2.1~deb12u2\nArchitecture: amd64\nDepends: libc6 (>= 2.34)\n\
        Description: pager program similar to more\n Version: 9\n .\n Filename: ../../etc/passwd\n";

    #[test]
    fn an_entry_is_read_as_it_was_written() {
        let package = Control::parse(FIELDS).unwrap();
        assert_eq!(package.file_name(), "less_590-2.1~deb12u2_amd64.deb");
        let deb = Deb {
            name: "less".into(),
            version: String::new(),
            sum: "ab".repeat(32).parse().unwrap(),
            size: 7,
        };
        let list = entry(&package, &deb) + &entry(&package, &deb);
        let listed = Listed {
            name: "less".into(),
            version: "2:590-2.1~deb12u2".into(),
            file: "less_590-2.1~deb12u2_amd64.deb".into(),
            sha256: "ab".repeat(32),
        };
        assert_eq!(read(&list), Some(vec![listed.clone(), listed]));
        assert!(list.contains("\n Version: 9\n"), "the description stays whole");
    }

    #[test]
    fn an_entry_that_lacks_something_makes_no_list() {
        for list in ["Package: a\n", "Package: a\nVersion: 1\nFilename: a.deb\nSHA256: x\n"] {
            assert_eq!(read(list), None, "{list}");
        }
        assert_eq!(read("\n\n"), Some(Vec::new()));
        assert_eq!(Control::parse("Package: a\n"), None);
    }
}
