//! Which modules of a crate know each other in a circle.

use std::collections::{BTreeMap, BTreeSet};

use lockhouse_tests::{Table, ensure, equal};

use crate::crates::CRATES;
use crate::paths::{Named, Written};
use crate::source::{Source, sources};

/// The modules of one crate, and what each names.
pub(crate) struct Modules {
    named: BTreeMap<Written, Named>,
}

impl Modules {
    pub(crate) fn of(sources: &[Source]) -> Self {
        Self { named: sources.iter().map(|source| (source.module.clone(), Named::of(source))).collect() }
    }

    /// Groups of modules that all know each other, directly or through others.
    pub(crate) fn cycles(&self) -> Vec<BTreeSet<String>> {
        let edges: BTreeMap<&Written, BTreeSet<Written>> =
            self.named.keys().map(|module| (module, self.known_by(module))).collect();
        let reached = |from: &Written| {
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
        let reached: BTreeMap<&Written, BTreeSet<Written>> =
            self.named.keys().map(|module| (module, reached(module))).collect();
        let mut cycles = Vec::new();
        let mut seen: BTreeSet<&Written> = BTreeSet::new();
        for (module, from_here) in &reached {
            if !from_here.contains(*module) || seen.contains(module) {
                continue;
            }
            let others = reached
                .keys()
                .filter(|other| from_here.contains(**other) && reached[*other].contains(*module));
            let group: Vec<&Written> = others.copied().collect();
            seen.extend(&group);
            cycles.push(group.iter().map(|module| name(module)).collect());
        }
        cycles
    }

    /// The modules whose items one names.
    fn known_by(&self, module: &Written) -> BTreeSet<Written> {
        let named = &self.named[module];
        let in_code = named.paths.iter().filter_map(|path| self.in_scope(module, path));
        let imported = named.own_imports.iter().filter_map(|path| self.absolute(module, path));
        // A module is a part of those around it: that it names what they have is no edge.
        in_code.chain(imported).map(|path| self.home(path)).filter(|home| !module.starts_with(home)).collect()
    }

    /// What a path in the code of a module stands for; none if it leads out of the crate, or is a name of the module's own.
    fn in_scope(&self, module: &Written, path: &Written) -> Option<Written> {
        match self.named[module].imports.get(&path[0]) {
            Some(import) => Some([&self.absolute(module, import)?[..], &path[1..]].concat()),
            None if path.len() > 1 => self.absolute(module, path),
            None => None,
        }
    }

    /// A path from the root of the crate on; none if it leads out of it.
    fn absolute(&self, module: &Written, path: &Written) -> Option<Written> {
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

    /// The module that an item is written in, whoever hands it on.
    fn home(&self, path: Written) -> Written {
        let mut module = Written::new();
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
            Some(import) if !import.starts_with(&path) => self.home([&import[..], &rest[1..]].concat()),
            _ => module,
        }
    }
}

fn name(module: &Written) -> String {
    if module.is_empty() { "the root".to_owned() } else { module.join("::") }
}

#[test]
fn modules_of_a_crate_never_know_each_other_in_a_circle() {
    let mut table = Table::new("circles of modules");
    for (name, folder, _) in CRATES {
        let cycles = Modules::of(&sources(folder)).cycles();
        table.row(format!("{name}: no modules in circles"), ensure(cycles.is_empty(), &cycles));
    }
    table.finish();
}

/// A rule that finds nothing would be worth nothing.
#[test]
fn circles_are_found_through_whatever_hands_a_name_on() {
    let module = |path: &[&str], text: &str| {
        let module = path.iter().map(|part| (*part).to_owned()).collect();
        Source { module, ..Source::of(text) }
    };
    let cycles = |parts: Vec<Source>| Modules::of(&parts).cycles().len();
    let root = "mod a; mod b; pub use b::B;";
    let mut table = Table::new("circles");
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
