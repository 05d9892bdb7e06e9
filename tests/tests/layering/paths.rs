//! Finds the paths that a Rust source file mentions: its imports, and the paths in its code.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{ExprMethodCall, ItemUse, Macro, Path, UseTree, Visibility};

use crate::layering::source::Source;

/// The segments of a Rust path, in source order: `a::b` is `["a", "b"]`.
pub(crate) type PathSegments = Vec<String>;

/// The paths and methods that the code of one source file mentions.
#[derive(Default)]
pub(crate) struct NamedPaths {
    /// The full path of each name that the file imports.
    pub(crate) imports: BTreeMap<String, PathSegments>,
    /// The paths of private imports, which other modules cannot access through this file.
    pub(crate) own_imports: BTreeSet<PathSegments>,
    /// The paths in the file's code, macros and attributes.
    pub(crate) paths: BTreeSet<PathSegments>,
    /// The names of the methods that the file calls.
    pub(crate) methods: BTreeSet<String>,
}

impl NamedPaths {
    pub(crate) fn from_source(source: &Source) -> Self {
        let mut named = Self::default();
        named.visit_file(&source.tree);
        named
    }

    /// Returns whether the file mentions a name: as a segment of a path or import, or as a called method.
    pub(crate) fn has(&self, segment: &str) -> bool {
        let has = |path: &PathSegments| path.iter().any(|part| part == segment);
        self.imports.values().any(has) || self.paths.iter().any(has) || self.methods.contains(segment)
    }

    /// Returns whether the file mentions a path that begins with these segments.
    pub(crate) fn has_path(&self, beginning: &[&str]) -> bool {
        let mut all = self.imports.values().chain(&self.own_imports).chain(&self.paths);
        all.any(|path| path.len() >= beginning.len() && path.iter().zip(beginning).all(|(a, b)| a == b))
    }

    fn import(&mut self, tree: &UseTree, before: &PathSegments, is_own: bool) {
        let with = |name: &syn::Ident| [&before[..], &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.import(&path.tree, &with(&path.ident), is_own),
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.import(tree, before, is_own));
            }
            UseTree::Name(name) if name.ident == "self" => {
                self.stands_for(before.last().cloned().unwrap_or_default(), before.clone(), is_own);
            }
            UseTree::Name(name) => self.stands_for(name.ident.to_string(), with(&name.ident), is_own),
            UseTree::Rename(name) if name.ident == "self" => {
                self.stands_for(name.rename.to_string(), before.clone(), is_own);
            }
            UseTree::Rename(name) => self.stands_for(name.rename.to_string(), with(&name.ident), is_own),
            UseTree::Glob(_) => drop(self.own_imports.insert(before.clone())),
        }
    }

    fn stands_for(&mut self, name: String, path: PathSegments, is_own: bool) {
        if is_own {
            self.own_imports.insert(path.clone());
        }
        self.imports.insert(name, path);
    }

    /// Collects the paths in the arguments of a macro, which syn returns as unparsed tokens.
    fn tokens(&mut self, tokens: TokenStream) {
        let (mut path, mut joins) = (PathSegments::new(), 0);
        for token in tokens {
            match token {
                TokenTree::Ident(name) if path.is_empty() || joins == 2 => {
                    path.push(name.to_string());
                    joins = 0;
                    continue;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' && !path.is_empty() && joins < 2 => {
                    joins += 1;
                    continue;
                }
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(name) => {
                    self.paths.insert(std::mem::take(&mut path));
                    path.push(name.to_string());
                    joins = 0;
                    continue;
                }
                _ => {}
            }
            if !path.is_empty() {
                self.paths.insert(std::mem::take(&mut path));
            }
            joins = 0;
        }
        if !path.is_empty() {
            self.paths.insert(path);
        }
    }
}

impl<'ast> Visit<'ast> for NamedPaths {
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.import(&item.tree, &PathSegments::new(), matches!(item.vis, Visibility::Inherited));
    }

    fn visit_path(&mut self, path: &'ast Path) {
        self.paths.insert(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        self.methods.insert(call.method.to_string());
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.visit_path(&call.path);
        self.tokens(call.tokens.clone());
    }
}
