//! Declared keys as people read them: commented TOML, and tables of Markdown.

use super::{KeySpec, TableSpec};

/// Where comments begin: in the first of these columns that is free.
const COMMENT_COLUMNS: [usize; 4] = [27, 40, 53, 66];

/// A table as commented TOML, without those below it.
pub(in crate::config) fn toml(table: &TableSpec) -> String {
    let mut text = String::new();
    if !table.path.is_empty() {
        text += &line(&format!("[{}]", table.path), &plain(table.about));
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

/// What stands beside a key: its meaning, its range, and its default where that is not its value here.
fn comment(key: &KeySpec) -> String {
    let about = Some(plain(&key.about)).filter(|about| !about.is_empty());
    let range = key.range.as_ref().map(ToString::to_string);
    let required = key.is_required.then(|| "required".to_owned());
    let default = key.default_words.as_ref().map(|words| format!("default: {}", plain(words)));
    [about, range, required, default].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// The keys of a table in Markdown, for the documentation that a test writes.
#[cfg(test)]
pub(in crate::config) fn markdown(table: &TableSpec) -> String {
    let mut text = "| key | default | range | |\n|---|---|---|---|\n".to_owned();
    for key in &table.keys {
        let range = key.range.as_ref().map(ToString::to_string).unwrap_or_default();
        let cells = [default(key), range, key.about.clone()];
        let cell = |cell: &String| if cell.is_empty() { " |".to_owned() } else { format!(" {cell} |") };
        text += &format!("| `{}` |{}\n", key.name, cells.iter().map(cell).collect::<String>());
    }
    text
}

/// The keys of a table as a list, one in each line.
pub(in crate::config) fn list(table: &TableSpec) -> String {
    let row = |key: &KeySpec| {
        let default = Some(plain(&default(key))).filter(|default| !default.is_empty());
        let range = key.range.as_ref().map(|range| format!("; {range}")).unwrap_or_default();
        let about = if key.about.is_empty() { String::new() } else { format!("; {}", plain(&key.about)) };
        format!("{:26} default {}{range}{about}\n", key.name, default.as_deref().unwrap_or("none"))
    };
    table.keys.iter().map(row).collect()
}

fn default(key: &KeySpec) -> String {
    key.default_words.clone().or(key.default.clone()).unwrap_or_default()
}

/// Without where links lead.
pub(super) fn plain(markdown: &str) -> String {
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
        assert_eq!(plain("see `a`, [the b](c.md#d) and [e](f)"), "see `a`, the b and e");
        assert_eq!(plain("`[limits]` and a (b)"), "`[limits]` and a (b)");
    }
}
