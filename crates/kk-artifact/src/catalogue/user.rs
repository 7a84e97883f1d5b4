//! Parses the user's own catalogue, and reports all errors in it.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::marker::PhantomData;

use kk_config::{Arch, ComponentKind, ConfigErrors, Diagnostic, Place, Severity};
use semver::Version;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_saphyr::{Location, Spanned};

use super::{Manifests, Part, builtin};
use crate::{Component, Sha256Sum};

/// One line of the catalogue.
pub(super) struct UserSum {
    pub(super) component: Component,
    pub(super) part: Part,
    pub(super) version: Version,
    pub(super) sum: Sha256Sum,
}

/// A map that keeps the order and the positions of its keys.
struct Pairs<T>(Vec<(Spanned<String>, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pairs<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for PairsVisitor<T> {
            type Value = Pairs<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<T>, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(PairsVisitor(PhantomData))
    }
}

/// `file` is the name of the text in errors.
pub(super) fn parse(file: &str, text: &str) -> Result<Vec<UserSum>, ConfigErrors> {
    let mut reader = Reader { file, text, errors: Vec::new(), sums: Vec::new() };
    match serde_saphyr::from_str::<Pairs<Pairs<Pairs<Spanned<String>>>>>(text) {
        Ok(components) => components.0.into_iter().for_each(|(name, arches)| reader.component(&name, arches)),
        Err(error) => reader.malformed(&error),
    }
    if reader.errors.is_empty() {
        Ok(reader.sums)
    } else {
        Err(ConfigErrors { errors: reader.errors, warnings: Vec::new() })
    }
}

/// Merges the checksums of two users' catalogues. Each parameter is a name for errors and a text. Returns the merged text and the
/// number of new checksums.
///
/// # Errors
/// Parse errors, and every version for which a different checksum is known already, in the old or in the built-in catalogue.
pub fn merge_catalogues(
    (old_name, old): (&str, &str),
    (new_name, new): (&str, &str),
) -> Result<(String, usize), ConfigErrors> {
    let builtin = super::Catalogue::builtin();
    let mut all: BTreeMap<(Component, Part, Version), Sha256Sum> = BTreeMap::new();
    let mut add = |sum: UserSum| all.insert((sum.component, sum.part, sum.version), sum.sum);
    for sum in parse(old_name, old)? {
        add(sum);
    }
    let (before, mut errors) = (all.len(), Vec::new());
    for UserSum { component, part, version, sum } in parse(new_name, new)? {
        let theirs = builtin.sum(component, &version, &part).cloned();
        let key = (component, part, version);
        let known = all.get(&key).map(|sum| (old_name, sum.clone())).or(theirs.map(|sum| ("kk", sum)));
        if let Some((name, known)) = known.filter(|(_, known)| *known != sum) {
            let message =
                format!("{component} {} for {}: {name} has another checksum, {known}", key.2, key.1);
            let hint = Some("if yours is right, correct the catalogue by hand".to_owned());
            errors.push(Diagnostic { severity: Severity::Error, message, hint, place: None });
            continue;
        }
        all.insert(key, sum);
    }
    if errors.is_empty() {
        Ok((text_of(&all), all.len() - before))
    } else {
        Err(ConfigErrors { errors, warnings: Vec::new() })
    }
}

fn text_of(sums: &BTreeMap<(Component, Part, Version), Sha256Sum>) -> String {
    let mut text =
        "# Checksums of programs, by architecture and version; spec.download.catalogue names this file.\n"
            .to_owned();
    let mut last = (None, None);
    for ((component, part, version), sum) in sums {
        if last.0 != Some(component) {
            let _ = writeln!(text, "{component}:");
            last = (Some(component), None);
        }
        if last.1 != Some(part) {
            let _ = writeln!(text, "  {part}:");
            last.1 = Some(part);
        }
        let _ = writeln!(text, "    {version}: {sum}");
    }
    text
}

struct Reader<'a> {
    file: &'a str,
    text: &'a str,
    errors: Vec<Diagnostic>,
    sums: Vec<UserSum>,
}

impl Reader<'_> {
    fn component(&mut self, name: &Spanned<String>, parts: Pairs<Pairs<Spanned<String>>>) {
        let component = Component::published().find(|component| component.name() == name.value);
        if component.is_none() {
            let known = Component::published().map(Component::name).collect::<Vec<_>>().join(", ");
            self.error(name, &format!("`{}` is not a component", name.value), &format!("one of {known}"));
        }
        let is_manifest = component.is_some_and(|component| component.kind() == ComponentKind::Manifest);
        for (name, versions) in parts.0 {
            let part = if is_manifest { self.file(component, &name) } else { self.arch(&name) };
            for (version, sum) in versions.0 {
                let parsed = (component, part.clone(), self.version(&version), self.sum(&sum));
                if let (Some(component), Some(part), Some(number), Some(sum)) = parsed {
                    self.add(&version, UserSum { component, part, version: number, sum });
                }
            }
        }
    }

    fn arch(&mut self, name: &Spanned<String>) -> Option<Part> {
        let arch = Arch::from_name(&name.value);
        if arch.is_none() {
            self.error(name, &format!("`{}` is not an architecture", name.value), "amd64 or arm64");
        }
        arch.map(Part::Arch)
    }

    fn file(&mut self, component: Option<Component>, name: &Spanned<String>) -> Option<Part> {
        let builtin = builtin::manifests();
        let files = || component.and_then(|component| builtin.get(&component)).into_iter();
        let known: Vec<&str> = files().flat_map(Manifests::files).collect();
        if !known.contains(&name.value.as_str()) {
            let hint = format!("one of {}", known.join(", "));
            self.error(name, &format!("`{}` is not a manifest of it", name.value), &hint);
            return None;
        }
        Some(Part::File(name.value.clone()))
    }

    /// The YAML parser finds duplicate keys, but not the same version with and without its v.
    fn add(&mut self, at: &Spanned<String>, new: UserSum) {
        let key = |sum: &UserSum| (sum.component, sum.part.clone(), sum.version.clone());
        if self.sums.iter().any(|sum| key(sum) == key(&new)) {
            self.error(at, &format!("`{}` is there twice", at.value), "write a version once, without its v");
        } else {
            self.sums.push(new);
        }
    }

    fn version(&mut self, text: &Spanned<String>) -> Option<Version> {
        let version = super::parse_version(&text.value);
        if version.is_none() {
            self.error(text, &format!("`{}` is not a version", text.value), "three numbers such as 1.2.3");
        }
        version
    }

    fn sum(&mut self, text: &Spanned<String>) -> Option<Sha256Sum> {
        match text.value.parse() {
            Ok(sum) => Some(sum),
            Err(message) => {
                let message: String = message;
                self.error(text, &message, "`sha256sum FILE` prints the checksum of a file");
                None
            }
        }
    }

    fn error(&mut self, at: &Spanned<String>, message: &str, hint: &str) {
        let place = self.place(at.referenced, at.value.chars().count());
        self.push(message.to_owned(), Some(hint.to_owned()), place);
    }

    /// A text that is not YAML or not three maps deep ends the parsing: nothing after that point can be trusted.
    fn malformed(&mut self, error: &serde_saphyr::Error) {
        let hint = "the form is `component: {architecture: {version: SHA-256}}`; manifests have the name of the file in place of \
             the architecture";
        let place = error.location().and_then(|location| self.place(location, 1));
        // The position is shown next to the source line, so the message need not repeat it.
        let message = error.without_snippet().to_string();
        let message = message.split(" at line ").next().unwrap_or_default().to_owned();
        self.push(message, Some(hint.to_owned()), place);
    }

    fn push(&mut self, message: String, hint: Option<String>, place: Option<Place>) {
        self.errors.push(Diagnostic { severity: Severity::Error, message, hint, place });
    }

    fn place(&self, location: Location, width: usize) -> Option<Place> {
        let line = usize::try_from(location.line()).ok()?;
        Some(Place {
            file: self.file.to_owned(),
            line,
            column: usize::try_from(location.column()).ok()?.max(1),
            width: width.max(1),
            source: self.text.lines().nth(line.checked_sub(1)?)?.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::merge_catalogues;

    fn sum(digit: &str) -> String {
        digit.repeat(64)
    }

    #[test]
    fn new_versions_are_laid_beside_the_old_ones_once() {
        let (a, b) = (sum("a"), sum("b"));
        let old = format!("etcd: {{amd64: {{9.0.0: {a}}}}}");
        let new =
            format!("kubelet: {{arm64: {{v1.99.1: {b}}}}}\netcd: {{amd64: {{9.0.0: {a}, 9.1.0: {b}}}}}");
        let (text, added) = merge_catalogues(("old", &old), ("new", &new)).unwrap();
        let lines: Vec<&str> = text.lines().skip(1).collect();
        let expected =
            format!("kubelet:\n  arm64:\n    1.99.1: {b}\netcd:\n  amd64:\n    9.0.0: {a}\n    9.1.0: {b}");
        assert_eq!((lines.join("\n"), added), (expected, 2));
        assert_eq!(merge_catalogues(("both", &text), ("new", &new)).unwrap(), (text.clone(), 0));
        assert_eq!(merge_catalogues(("none", "{}"), ("both", &text)).unwrap(), (text, 3));
    }

    #[test]
    fn another_sum_for_a_known_version_is_refused_and_all_of_them_are_named() {
        let old = format!("etcd: {{amd64: {{9.0.0: {}}}}}", sum("a"));
        let new = format!("etcd: {{amd64: {{9.0.0: {0}}}}}\nrunc: {{amd64: {{1.3.6: {0}}}}}", sum("b"));
        let errors = merge_catalogues(("old.yaml", &old), ("new.yaml", &new)).unwrap_err().errors;
        let said: Vec<_> = errors.iter().map(|error| error.message.as_str()).collect();
        assert!(said[0].contains("etcd 9.0.0 for amd64: old.yaml has another checksum"), "{said:?}");
        assert!(
            said[1].contains("runc 1.3.6 for amd64: kk has another checksum") && said.len() == 2,
            "{said:?}"
        );
    }
}
