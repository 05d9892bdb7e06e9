//! Finds and removes tables in a TOML document whose comments, order and layout stay.

use lockhouse_policies::{Diagnostic, Diagnostics, Source};
use toml_edit::{DocumentMut, Item, Table, TableLike};

/// Parses a TOML file for an edit.
///
/// # Errors
/// The file is not valid TOML. The error shows no line of the file, which may hold a secret.
pub fn parse(source: &Source) -> Result<DocumentMut, Diagnostics> {
    source.text.parse().map_err(|error: toml_edit::TomlError| {
        let fault = Diagnostic::new(source, None, "the file is not valid TOML", error.message().to_owned());
        fault.with_help("correct it, and run the command again").into()
    })
}

/// Returns the item at a path of nested keys. `None` if there is none.
pub fn find<'d>(document: &'d DocumentMut, path: &[&str]) -> Option<&'d Item> {
    path.iter().try_fold(document.as_item(), |item, key| item.as_table_like()?.get(key))
}

/// Returns the table at a path of nested keys; the path may be empty. `None` if there is none.
pub fn find_mut<'d>(document: &'d mut DocumentMut, path: &[&str]) -> Option<&'d mut dyn TableLike> {
    let root: &mut dyn TableLike = document.as_table_mut();
    path.iter().try_fold(root, |table, key| table.get_mut(key)?.as_table_like_mut())
}

/// Removes the table `name` below the table `section`, with all its subtables. Returns whether the table existed.
pub fn remove(document: &mut DocumentMut, section: &str, name: &str) -> bool {
    let Some(tables) = document.get_mut(section).and_then(Item::as_table_like_mut) else { return false };
    match tables.remove(name) {
        Some(Item::Table(table)) => {
            let prefix = table.decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default();
            preserve_comments(document, prefix, table.position());
            true
        }
        removed => removed.is_some(),
    }
}

/// Keeps those comments above a removed table that an empty line separates from the table, since they do not describe
/// it. `prefix` is the text above the table, `position` the number of the table in the file. The comments are moved to
/// the next table, or to the end of the file.
fn preserve_comments(document: &mut DocumentMut, prefix: &str, position: Option<isize>) {
    let Some((preserved, _)) = prefix.rsplit_once("\n\n") else { return };
    if preserved.trim().is_empty() {
        return;
    }
    let next = next_position(document.as_table(), position.unwrap_or_default());
    let preserved = format!("{preserved}\n");
    let is_prepended = next.is_some_and(|next| prepend(document.as_table_mut(), next, &preserved));
    if !is_prepended {
        let trailing = document.trailing().as_str().unwrap_or_default().to_owned();
        document.set_trailing(format!("{preserved}{trailing}"));
    }
}

/// Returns the lowest table number in `table` and its subtables that is greater than `after`. Tables are numbered in
/// the order of their headers in the file. `None` if there is no such table.
fn next_position(table: &Table, after: isize) -> Option<isize> {
    let below = table.iter().filter_map(|(_, item)| item.as_table());
    let positions = below.flat_map(|table| {
        let own = table.position().filter(|position| *position > after && !table.is_implicit());
        own.into_iter().chain(next_position(table, after))
    });
    positions.min()
}

/// Inserts text before the subtable of `table` that has the number `position` in the file. Returns whether that
/// subtable was found.
fn prepend(table: &mut Table, position: isize, text: &str) -> bool {
    table.iter_mut().filter_map(|(_, item)| item.as_table_mut()).any(|table| {
        if table.position() != Some(position) || table.is_implicit() {
            return prepend(table, position, text);
        }
        let prefix = table.decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default();
        let prefix = format!("{text}{prefix}");
        table.decor_mut().set_prefix(prefix);
        true
    })
}
