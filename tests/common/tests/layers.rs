//! Checks which modules of a crate import each other, read from its source: nothing imports from a layer above, and directories
//! do not import each other in a circle.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use proc_macro2::{TokenStream, TokenTree};
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

/// The imports of one file, and its modules that are compiled for tests only.
#[derive(Default)]
struct Reader {
    /// Where in the crate it reads: the module of the file, and modules inside the file.
    at: Module,
    /// The directory of the file.
    directory: Module,
    imports: BTreeSet<Module>,
    /// Imports under another name than their own.
    renamed: BTreeMap<String, Module>,
    only_tests: BTreeSet<Module>,
}

impl Reader {
    fn resolve(&self, path: &[String]) -> Module {
        let (mut base, mut rest) = (self.at.clone(), path);
        if let Some("crate") = rest.first().map(String::as_str) {
            base.clear();
            rest = &rest[1..];
        }
        while let Some("self" | "super") = rest.first().map(String::as_str) {
            if rest[0] == "super" {
                base.pop();
            }
            rest = &rest[1..];
        }
        // Any other path belongs to this module, or to another crate, which is no module here.
        base.extend(rest.iter().cloned());
        base
    }

    fn import(&mut self, path: &[String]) {
        let path = self.resolve(path);
        self.imports.insert(path);
    }

    fn tree(&mut self, before: &mut Vec<String>, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.tree(before, &path.tree);
                before.pop();
            }
            UseTree::Group(group) => group.items.iter().for_each(|one| self.tree(before, one)),
            UseTree::Glob(_) => {
                assert!(!self.at.is_empty(), "a glob in the root of a crate hides where names are from");
                self.import(before);
            }
            UseTree::Name(name) => self.leaf(before, name.ident.to_string()),
            UseTree::Rename(name) => {
                let path: Vec<String> = before.iter().cloned().chain([name.ident.to_string()]).collect();
                self.renamed.insert(name.rename.to_string(), self.resolve(&path));
                self.leaf(before, name.ident.to_string());
            }
        }
    }

    /// Imports what paths in tokens name: `crate` or `super`, then `::` and a name, repeatedly.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' && !path.is_empty() => {
                    colons += 1;
                    continue;
                }
                TokenTree::Ident(name) if colons == 2 && !path.is_empty() => {
                    path.push(name.to_string());
                    colons = 0;
                    continue;
                }
                TokenTree::Ident(name) => {
                    self.end_of_path(&mut path);
                    if name == "crate" || name == "super" {
                        path.push(name.to_string());
                    }
                }
                TokenTree::Group(group) => {
                    self.end_of_path(&mut path);
                    self.tokens(group.stream());
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => self.end_of_path(&mut path),
            }
            colons = 0;
        }
        self.end_of_path(&mut path);
    }

    fn end_of_path(&mut self, path: &mut Vec<String>) {
        if path.len() > 1 {
            self.import(path);
        }
        path.clear();
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

    /// The arguments of a macro are not parsed: paths are found among their tokens. An included file counts like a module.
    fn visit_macro(&mut self, one: &'ast syn::Macro) {
        self.tokens(one.tokens.clone());
        let text = one.tokens.to_string();
        for included in text.split('"').filter(|literal| literal.starts_with("../")) {
            let up = included.matches("../").count();
            if let Some(depth) = self.directory.len().checked_sub(up) {
                let rest = included.trim_start_matches("../").split('/').map(str::to_owned);
                self.imports.insert(self.directory[..depth].iter().cloned().chain(rest).collect());
            }
        }
    }
}

/// The imports of every module of a crate, except what only its tests import.
fn imports(name: &str) -> BTreeMap<Module, BTreeSet<Module>> {
    let root = crates().join(name).join("src");
    let (mut files, mut directories) = (BTreeMap::new(), vec![root.clone()]);
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).expect("a directory of sources") {
            let path = entry.expect("a file of sources").path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a readable file");
                files.insert(path.strip_prefix(&root).expect("a file below the root").to_owned(), text);
            }
        }
    }
    imports_of(&files)
}

/// The same for files, by their paths below `src`. A name that the crate's root re-exports counts as an import from its
/// declaration.
fn imports_of(files: &BTreeMap<PathBuf, String>) -> BTreeMap<Module, BTreeSet<Module>> {
    let (mut found, mut only_tests, mut exported) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
    for (path, text) in files {
        let stem = path.with_extension("");
        let mut module: Module = stem.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        let directory = module[..module.len() - 1].to_vec();
        if module.last().is_some_and(|last| last == "mod" || module.len() == 1 && last == "lib") {
            module.pop();
        }
        let parsed = syn::parse_file(text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut reader = Reader { at: module.clone(), directory, ..Reader::default() };
        reader.visit_file(&parsed);
        only_tests.extend(reader.only_tests);
        if module.is_empty() {
            let named = |import: &Module| Some((import.last()?.clone(), import.clone()));
            exported = reader.imports.iter().filter(|import| import.len() > 1).filter_map(named).collect();
            exported.extend(reader.renamed);
        } else {
            found.insert(module, reader.imports);
        }
    }
    found.retain(|module, _| !only_tests.iter().any(|tests| module.starts_with(tests)));
    let roots: BTreeSet<String> = found.keys().filter_map(|module| module.first().cloned()).collect();
    let declared = |import: &Module| {
        let first = import.first().filter(|first| !roots.contains(*first))?;
        let mut path = exported.get(first)?.clone();
        path.extend(import[1..].iter().cloned());
        Some(path)
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

/// A circle is found through every way to import, and imports of tests do not count.
#[test]
fn a_circle_is_found() {
    for (case, importing, in_circle) in [
        ("use", "use crate::b::{self, Thing};", true),
        ("relative path", "fn f() -> super::super::b::Thing { todo() }", true),
        ("name of the root", "use crate::Thing;", true),
        ("member of a name of the root", "fn f() { crate::Thing::new() }", true),
        ("renamed name of the root", "use crate::Other;", true),
        ("inside a macro", "fn f() { vec![crate::b::new()]; }", true),
        ("changed inside a macro", "fn f() { vec![&mut crate::b::X]; }", true),
        ("relative inside a macro", "fn f() { g!(x as super::super::b::Thing, \"a\"); }", true),
        ("text inside a macro", "fn f() { g!(\"crate::b::new()\"); }", false),
        ("keyword inside a macro", "fn f() { g!(b: crate, b); }", false),
        ("included file", "const TEXT: &str = include_str!(\"../b/text.sh\");", true),
        ("module inside", "mod inner { use super::super::super::b::Thing; }", true),
        ("module of tests", "#[cfg(test)] mod tests { use crate::b; }", false),
        ("file of tests", "#[cfg(test)] mod only;", false),
        ("another crate", "use b::Thing;", false),
        ("nothing", "pub(crate) fn f() {}", false),
    ] {
        let files = [
            ("lib.rs", "mod a; mod b; mod c; pub use b::Thing; pub use b::Deep as Other;"),
            ("a/mod.rs", "mod one;"),
            ("a/one.rs", importing),
            ("a/one/only.rs", if importing.contains("mod only") { "use crate::b;" } else { "" }),
            ("b/mod.rs", "use crate::c;"),
            ("c.rs", "use crate::a::one;"),
        ];
        let files = files.map(|(path, text)| (PathBuf::from(path), text.to_owned())).into();
        let found = circles(&imports_of(&files), |module| module.first().cloned());
        let circle = BTreeSet::from(["a", "b", "c"].map(str::to_owned));
        let expected = if in_circle { BTreeSet::from([circle]) } else { BTreeSet::new() };
        assert_eq!(found, expected, "{case}");
    }
}
