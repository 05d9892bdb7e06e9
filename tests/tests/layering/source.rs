//! Rust sources as syntax trees, without what only tests have.

use std::path::{Path, PathBuf};

use syn::{Attribute, File, Item, Meta};

/// A file of a crate.
pub(crate) struct Source {
    /// From the root of the repository on.
    pub(crate) path: String,
    /// Its module, from the root of its crate on.
    pub(crate) module: Vec<String>,
    pub(crate) tree: File,
    pub(crate) text: String,
}

impl Source {
    /// Of a crate that is nothing else.
    pub(crate) fn of(text: &str) -> Self {
        let tree = parse(text).unwrap();
        Self { path: "lib.rs".into(), module: Vec::new(), tree, text: text.to_owned() }
    }
}

fn parse(text: &str) -> syn::Result<File> {
    let mut tree = syn::parse_file(text)?;
    tree.items.retain(|item| !is_test(item));
    Ok(tree)
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Every file of the crate whose sources are in this folder, without modules of tests.
pub(crate) fn sources(folder: &str) -> Vec<Source> {
    let folder = root().join(folder);
    let mut sources = Vec::new();
    for top in ["lib.rs", "main.rs"] {
        if folder.join(top).is_file() {
            read(&folder.join(top), &folder, Vec::new(), &mut sources);
        }
    }
    assert!(!sources.is_empty(), "no crate in {folder:?}");
    sources
}

/// The file of a module, and those of the modules in it, which are in `folder`.
fn read(file: &Path, folder: &Path, module: Vec<String>, sources: &mut Vec<Source>) {
    let text = std::fs::read_to_string(file).unwrap();
    let tree = parse(&text).unwrap_or_else(|error| panic!("{file:?}: {error}"));
    let children = tree.items.iter().filter_map(|item| match item {
        Item::Mod(inner) if inner.content.is_none() => Some(inner.ident.to_string()),
        _ => None,
    });
    for child in children.collect::<Vec<_>>() {
        let (file, inside) = (folder.join(format!("{child}.rs")), folder.join(&child));
        if file.is_file() {
            read(&file, &inside, [&module[..], &[child]].concat(), sources);
        }
    }
    let path = file.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
    sources.push(Source { path, module, tree, text });
}

fn is_test(item: &Item) -> bool {
    let attributes: &[Attribute] = match item {
        Item::Mod(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        Item::Const(item) => &item.attrs,
        _ => &[],
    };
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        _ => false,
    })
}
