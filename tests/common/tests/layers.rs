//! Which module of a crate imports which other one, read from its source: nothing imports from a layer above, and directories do not
//! import each other in a circle.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use syn::{
    Attribute, Item, ItemMod, UseTree,
    visit::{self, Visit},
};

/// The layers of kk-cluster. Each imports from itself and from those before it.
const LAYERS: [&str; 4] = ["base", "model", "capabilities", "commands"];

/// Top-level modules of other crates that import each other in a circle, and why.
const CIRCLES: [(&str, &[&str]); 5] = [
    // An error is printed, and what the printer reads from arguments may be wrong.
    ("kk", &["args", "error", "printer"]),
    // An error shows addresses and checksums, and reading these may fail.
    ("kk-artifact", &["address", "artifact", "error"]),
    // The index of a bundle names artifacts, and a bundle is a source of checksums.
    ("kk-artifact", &["bundle", "catalogue"]),
    // A field of the file is declared in one place and read in the other.
    ("kk-config", &["spec", "v1alpha2"]),
    // Facts hold the answers to questions, and a question reads facts.
    ("kk-engine", &["facts", "question"]),
];

/// A module by its segments below `src`, without `mod`.
type Module = Vec<String>;

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates")
}

fn has_cfg_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|one| {
        one.path().is_ident("cfg") && one.parse_args::<syn::Path>().is_ok_and(|what| what.is_ident("test"))
    })
}

/// What one file imports, and which of its modules are compiled for tests only.
#[derive(Default)]
struct Reader {
    /// Where in the crate it reads: the module of the file, and modules inside the file.
    at: Module,
    imports: BTreeSet<Module>,
    only_tests: BTreeSet<Module>,
}

impl Reader {
    fn import(&mut self, path: &[String]) {
        let (mut base, mut rest) = (self.at.clone(), path);
        match path.first().map(String::as_str) {
            Some("crate") => {
                base.clear();
                rest = &path[1..];
            }
            Some("self" | "super") => {
                while let Some("self" | "super") = rest.first().map(String::as_str) {
                    if rest[0] == "super" {
                        base.pop();
                    }
                    rest = &rest[1..];
                }
            }
            // Of this module, or of another crate, which is no module here.
            Some(_) | None => {}
        }
        base.extend(rest.iter().cloned());
        self.imports.insert(base);
    }

    fn tree(&mut self, before: &mut Vec<String>, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.tree(before, &path.tree);
                before.pop();
            }
            UseTree::Group(group) => group.items.iter().for_each(|one| self.tree(before, one)),
            UseTree::Glob(_) => self.import(before),
            UseTree::Name(name) => self.leaf(before, name.ident.to_string()),
            UseTree::Rename(name) => self.leaf(before, name.ident.to_string()),
        }
    }

    fn leaf(&mut self, before: &mut Vec<String>, name: String) {
        if name == "self" && !before.is_empty() {
            return self.import(before);
        }
        before.push(name);
        self.import(before);
        before.pop();
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Const(one) => &one.attrs,
            Item::Enum(one) => &one.attrs,
            Item::Fn(one) => &one.attrs,
            Item::Impl(one) => &one.attrs,
            Item::Mod(one) => &one.attrs,
            Item::Static(one) => &one.attrs,
            Item::Struct(one) => &one.attrs,
            Item::Use(one) => &one.attrs,
            _ => return visit::visit_item(self, item),
        };
        match item {
            Item::Mod(module) if has_cfg_test(attributes) => {
                let mut path = self.at.clone();
                path.push(module.ident.to_string());
                self.only_tests.insert(path);
            }
            _ if has_cfg_test(attributes) => {}
            Item::Use(one) => self.tree(&mut Vec::new(), &one.tree),
            _ => visit::visit_item(self, item),
        }
    }

    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        self.at.push(module.ident.to_string());
        visit::visit_item_mod(self, module);
        self.at.pop();
    }

    /// `pub(crate)` imports nothing.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|one| one.ident.to_string()).collect();
        self.import(&segments);
        visit::visit_path(self, path);
    }
}

/// The imports of every module of a crate, except what only its tests import. A name that the crate's root exports again counts as
/// an import from where it is declared.
fn imports(name: &str) -> BTreeMap<Module, BTreeSet<Module>> {
    let root = crates().join(name).join("src");
    let (mut files, mut directories) = (Vec::new(), vec![root.clone()]);
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).expect("a directory of sources") {
            let path = entry.expect("a file of sources").path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    let (mut found, mut only_tests) = (BTreeMap::new(), BTreeSet::new());
    for file in files {
        let relative = file.strip_prefix(&root).expect("a file below the root").with_extension("");
        let mut module: Module = relative.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        if module.last().is_some_and(|last| last == "mod" || module.len() == 1 && last == "lib") {
            module.pop();
        }
        let text = fs::read_to_string(&file).expect("a readable file");
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let mut reader = Reader { at: module.clone(), ..Reader::default() };
        reader.visit_file(&parsed);
        only_tests.extend(reader.only_tests);
        found.insert(module, reader.imports);
    }
    found.retain(|module, _| !only_tests.iter().any(|tests| module.starts_with(tests)));
    let exported = found.remove(&Vec::new()).unwrap_or_default();
    let declared = |import: &Module| match &import[..] {
        [only] => exported.iter().find(|one| one.len() > 1 && one.last() == Some(only)).cloned(),
        _ => None,
    };
    for imports in found.values_mut() {
        *imports = imports.iter().map(|one| declared(one).unwrap_or_else(|| one.clone())).collect();
    }
    found
}

/// The circles among the groups that `group` makes of modules, each sorted.
fn circles(
    imports: &BTreeMap<Module, BTreeSet<Module>>,
    group: impl Fn(&Module) -> Option<String>,
) -> BTreeSet<BTreeSet<String>> {
    let groups: BTreeSet<String> = imports.keys().filter_map(&group).collect();
    let mut reach: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (module, imported) in imports {
        let Some(from) = group(module) else { continue };
        let to = imported.iter().filter_map(&group).filter(|to| *to != from && groups.contains(to));
        reach.entry(from.clone()).or_default().extend(to);
    }
    loop {
        let further: Vec<(String, BTreeSet<String>)> = reach
            .iter()
            .map(|(from, to)| {
                (from.clone(), to.iter().filter_map(|next| reach.get(next)).flatten().cloned().collect())
            })
            .collect();
        let before: usize = reach.values().map(BTreeSet::len).sum();
        for (from, to) in further {
            reach.entry(from).or_default().extend(to);
        }
        if before == reach.values().map(BTreeSet::len).sum::<usize>() {
            break;
        }
    }
    let in_circle = |name: &&String| reach.get(*name).is_some_and(|to| to.contains(*name));
    let with = |name: &String| {
        groups
            .iter()
            .filter(|other| {
                *other == name
                    || reach.get(name).is_some_and(|to| to.contains(*other))
                        && reach.get(*other).is_some_and(|to| to.contains(name))
            })
            .cloned()
            .collect()
    };
    groups.iter().filter(in_circle).map(with).collect()
}

#[test]
fn each_layer_of_kk_cluster_imports_only_from_the_layers_below() {
    let layer =
        |module: &Module| LAYERS.iter().position(|layer| module.first().is_some_and(|one| one == layer));
    let mut wrong = Vec::new();
    let imports = imports("kk-cluster");
    assert!(imports.len() > 200, "{} modules", imports.len());
    for (module, imported) in &imports {
        let from = layer(module).unwrap_or_else(|| panic!("{} is in no layer", module.join("::")));
        for one in imported {
            if layer(one).is_none_or(|to| to > from) {
                wrong.push(format!("{} imports {}", module.join("::"), one.join("::")));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn capabilities_import_each_other_in_no_circle() {
    let capability = |module: &Module| match &module[..] {
        [layer, name, ..] if layer == "capabilities" => Some(name.clone()),
        _ => None,
    };
    assert_eq!(circles(&imports("kk-cluster"), capability), BTreeSet::new());
}

#[test]
fn modules_of_a_crate_import_each_other_in_no_circle_except_these() {
    let named =
        CIRCLES.map(|(name, modules)| (name.to_owned(), modules.iter().map(|&one| one.to_owned()).collect()));
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(crates()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let circles = circles(&imports(&name), |module| module.first().cloned());
        found.extend(circles.into_iter().map(|circle| (name.clone(), circle)));
    }
    assert_eq!(found, BTreeSet::from(named));
}

/// The test of the tests: a circle is found also through a name that the root exports again, and imports of tests do not count.
#[test]
fn a_circle_is_found() {
    let module = |path: &str| path.split("::").map(str::to_owned).collect::<Module>();
    let of = |at: &str, text: &str| {
        let mut reader = Reader { at: module(at), ..Reader::default() };
        reader.visit_file(&syn::parse_file(text).unwrap());
        (module(at), reader.imports)
    };
    let imports = BTreeMap::from([
        of("a::one", "use crate::{b::{self, Thing}, c}; #[cfg(test)] mod tests { use crate::d; }"),
        of("b", "fn f() -> super::c::Thing { todo!() }"),
        of("c::two", "mod inner { use super::super::super::a::one; }"),
        of("d", "use crate::a;"),
    ]);
    let circle = BTreeSet::from(["a", "b", "c"].map(str::to_owned));
    assert_eq!(circles(&imports, |module| module.first().cloned()), BTreeSet::from([circle]));
}
