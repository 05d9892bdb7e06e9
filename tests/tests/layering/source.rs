//! Parses the Rust source files of a crate into syntax trees, without their test modules.

use std::path::{Path, PathBuf};

use syn::{Attribute, File, Item, Meta};

/// One source file of a crate.
pub(crate) struct Source {
    /// The path of the file, relative to the root of the repository.
    pub(crate) path: String,
    /// The module's path in the crate: the names of its parent modules and its own; empty for the root module.
    pub(crate) module: Vec<String>,
    pub(crate) tree: File,
}

impl Source {
    /// Returns the source of a crate whose only file has this text.
    pub(crate) fn from_text(text: &str) -> Self {
        let tree = parse(text).unwrap();
        Self { path: "lib.rs".into(), module: Vec::new(), tree }
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

/// Returns every source file of the crate in this folder, without test modules. The path of the folder is relative to
/// the root of the repository.
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

/// Adds the source file of a module to `sources`, and recursively the files of its child modules, which are below
/// `folder`.
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
    sources.push(Source { path, module, tree });
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
