//! Renders the declared configuration keys for people: as commented TOML, and as Markdown tables.

use super::{KeySpec, TableSpec};

/// The columns at which a comment may begin in a line of TOML. A comment begins at the first of these columns after the
/// code of its line.
const COMMENT_COLUMNS: [usize; 4] = [27, 40, 53, 66];

/// Renders a declared table as commented TOML, without its nested tables.
pub(crate) fn toml(table: &TableSpec) -> String {
    let mut text = String::new();
    if !table.path.is_empty() {
        text += &line(&format!("[{}]", table.path), &strip_links(table.description));
    }
    for key in &table.keys {
        let value = key.example.or(key.default.as_deref()).unwrap_or_default();
        text += &line(&format!("{} = {value}", key.name), &comment(key));
    }
    text
}

fn line(code: &str, comment: &str) -> String {
    if comment.is_empty() {
        return format!("{code}\n");
    }
    let column = COMMENT_COLUMNS.into_iter().find(|column| code.len() <= *column).unwrap_or(code.len());
    format!("{code:column$} # {comment}\n")
}

/// Returns the comment of a key in the TOML: its description and range, whether it is required, and the description of
/// its default.
fn comment(key: &KeySpec) -> String {
    let description = Some(strip_links(&key.description)).filter(|description| !description.is_empty());
    let range = key.range.as_ref().map(ToString::to_string);
    let required = key.is_required.then(|| "required".to_owned());
    let default = key.default_text.as_ref().map(|words| format!("default: {}", strip_links(words)));
    [description, range, required, default].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// Renders the keys of a declared table as a Markdown table.
#[cfg(test)]
pub(crate) fn markdown(table: &TableSpec) -> String {
    let mut text = "| key | default | range | description |\n|---|---|---|---|\n".to_owned();
    for key in &table.keys {
        let range = key.range.as_ref().map(ToString::to_string).unwrap_or_default();
        let cells = [default(key), range, key.description.clone()];
        let cell = |cell: &String| if cell.is_empty() { " |".to_owned() } else { format!(" {cell} |") };
        text += &format!("| `{}` |{}\n", key.name, cells.iter().map(cell).collect::<String>());
    }
    text
}

/// Renders the keys of a declared table as a list with one key per line.
pub(crate) fn list(table: &TableSpec) -> String {
    let row = |key: &KeySpec| {
        let default = Some(strip_links(&default(key))).filter(|default| !default.is_empty());
        let range = key.range.as_ref().map(|range| format!("; {range}")).unwrap_or_default();
        let description = if key.description.is_empty() {
            String::new()
        } else {
            format!("; {}", strip_links(&key.description))
        };
        format!("{:26} default {}{range}{description}\n", key.name, default.as_deref().unwrap_or("none"))
    };
    table.keys.iter().map(row).collect()
}

fn default(key: &KeySpec) -> String {
    key.default_text.clone().or(key.default.clone()).unwrap_or_default()
}

/// Replaces the links in a Markdown text by their link texts.
pub(super) fn strip_links(markdown: &str) -> String {
    let mut text = String::new();
    let mut rest = markdown;
    while let Some((before, link)) = rest.split_once("](") {
        let (opened, name) = before.rsplit_once('[').unwrap_or((before, ""));
        text += opened;
        text += name;
        rest = link.split_once(')').map_or("", |(_, after)| after);
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_taken_out() {
        assert_eq!(strip_links("see `a`, [the b](c.md#d) and [e](f)"), "see `a`, the b and e");
        assert_eq!(strip_links("`[limits]` and a (b)"), "`[limits]` and a (b)");
    }
}
