//! Tests that the modules of a Lockhouse crate do not depend on each other in cycles.

use std::collections::{BTreeMap, BTreeSet};

use lockhouse_tests::{Table, ensure, equal};

use crate::layering::crates::CRATES;
use crate::layering::paths::{NamedPaths, PathSegments};
use crate::layering::source::{Source, sources};

/// The modules of one crate, with the paths that the code of each module mentions.
struct Modules {
    named: BTreeMap<PathSegments, NamedPaths>,
}

impl Modules {
    fn from_sources(sources: &[Source]) -> Self {
        Self {
            named: sources
                .iter()
                .map(|source| (source.module.clone(), NamedPaths::from_source(source)))
                .collect(),
        }
    }

    /// Returns the cycles between modules: each set has the names of modules that depend on each other, directly or
    /// indirectly. The list is empty if there is no cycle.
    fn cycles(&self) -> Vec<BTreeSet<String>> {
        let edges: BTreeMap<&PathSegments, BTreeSet<PathSegments>> =
            self.named.keys().map(|module| (module, self.dependencies(module))).collect();
        let reached = |from: &PathSegments| {
            let (mut reached, mut next) = (BTreeSet::new(), vec![from.clone()]);
            while let Some(module) = next.pop() {
                for known in edges.get(&module).into_iter().flatten() {
                    if reached.insert(known.clone()) {
                        next.push(known.clone());
                    }
                }
            }
            reached
        };
        let reached: BTreeMap<&PathSegments, BTreeSet<PathSegments>> =
            self.named.keys().map(|module| (module, reached(module))).collect();
        let mut cycles = Vec::new();
        let mut seen: BTreeSet<&PathSegments> = BTreeSet::new();
        for (module, from_here) in &reached {
            if !from_here.contains(*module) || seen.contains(module) {
                continue;
            }
            let others = reached
                .keys()
                .filter(|other| from_here.contains(**other) && reached[*other].contains(*module));
            let group: Vec<&PathSegments> = others.copied().collect();
            seen.extend(&group);
            cycles.push(group.iter().map(|module| name(module)).collect());
        }
        cycles
    }

    /// Returns the other modules whose items the code of `module` mentions. Parent modules are omitted.
    fn dependencies(&self, module: &PathSegments) -> BTreeSet<PathSegments> {
        let named = &self.named[module];
        let in_code = named.paths.iter().filter_map(|path| self.resolve(module, path));
        let imported = named.own_imports.iter().filter_map(|path| self.absolute(module, path));
        // A module belongs to its ancestors, so naming an item of an ancestor is not an edge.
        in_code
            .chain(imported)
            .map(|path| self.defining_module(path))
            .filter(|home| !module.starts_with(home))
            .collect()
    }

    /// Resolves a path in the code of `module` to a path from the root of the crate. Returns `None` for a path into
    /// another crate and for a name that the module itself defines.
    fn resolve(&self, module: &PathSegments, path: &PathSegments) -> Option<PathSegments> {
        match self.named[module].imports.get(&path[0]) {
            Some(import) => Some([&self.absolute(module, import)?[..], &path[1..]].concat()),
            None if path.len() > 1 => self.absolute(module, path),
            None => None,
        }
    }

    /// Resolves a path of an import in `module` to a path from the root of the crate. Returns `None` for a path into
    /// another crate.
    fn absolute(&self, module: &PathSegments, path: &PathSegments) -> Option<PathSegments> {
        let mut from = module.clone();
        let mut path = &path[..];
        match path[0].as_str() {
            "crate" => from.clear(),
            "self" => {}
            "super" => {
                while path.first().is_some_and(|first| first == "super") {
                    from.pop();
                    path = &path[1..];
                }
                return Some([&from[..], path].concat());
            }
            first if self.named.contains_key(&[&from[..], &[first.to_owned()]].concat()) => {
                return Some([&from[..], path].concat());
            }
            _ => return None,
        }
        Some([&from[..], &path[1..]].concat())
    }

    /// Returns the module that defines the item at `path`. Re-exports on the way are followed.
    fn defining_module(&self, path: PathSegments) -> PathSegments {
        let mut module = PathSegments::new();
        let mut rest = &path[..];
        while let Some((first, after)) = rest.split_first() {
            let inner = [&module[..], std::slice::from_ref(first)].concat();
            if !self.named.contains_key(&inner) {
                break;
            }
            (module, rest) = (inner, after);
        }
        let handed_on = rest.first().and_then(|first| self.named[&module].imports.get(first));
        match handed_on.and_then(|import| self.absolute(&module, import)) {
            Some(import) if !import.starts_with(&path) => {
                self.defining_module([&import[..], &rest[1..]].concat())
            }
            _ => module,
        }
    }
}

fn name(module: &PathSegments) -> String {
    if module.is_empty() { "the root".to_owned() } else { module.join("::") }
}

#[test]
fn modules_of_a_crate_have_no_dependency_cycles() {
    let mut table = Table::new("dependency cycles of modules");
    for (name, folder, _) in CRATES {
        let cycles = Modules::from_sources(&sources(folder)).cycles();
        table.row(format!("{name}: no modules in circles"), ensure(cycles.is_empty(), &cycles));
    }
    table.finish();
}

/// Control: checks that the search finds the dependency cycles of sample modules, and finds none in sample modules
/// without a cycle.
#[test]
fn cycles_are_found_through_reexports() {
    let module = |path: &[&str], text: &str| {
        let module = path.iter().map(|part| (*part).to_owned()).collect();
        Source { module, ..Source::from_text(text) }
    };
    let cycles = |parts: Vec<Source>| Modules::from_sources(&parts).cycles().len();
    let root = "mod a; mod b; pub use b::B;";
    let mut table = Table::new("dependency cycles");
    for (what, a, b, expected) in [
        ("one direction", "use super::b::B; pub struct A(B);", "pub struct B;", 0),
        ("imports", "use super::b::B; pub struct A(B);", "use super::a::A; pub struct B(A);", 1),
        ("a path in code", "pub struct A(crate::b::B);", "use super::a::A; pub struct B(A);", 1),
        ("handed on by the root", "use crate::B; pub struct A(B);", "use super::a::A; pub struct B(A);", 1),
        ("a macro", "fn f() { assert!(crate::b::ok()); }", "use super::a::A;", 1),
        ("the root itself", "use super::Root; pub struct A(Root);", "pub struct B;", 0),
    ] {
        let parts = vec![module(&[], root), module(&["a"], a), module(&["b"], b)];
        table.row(what, equal(cycles(parts), expected));
    }
    table.finish();
}
