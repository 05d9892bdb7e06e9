//! Adds and removes entries of an array in a TOML file, and keeps the comments and the layout of the other entries.

use toml_edit::{Array, RawString, Value};

/// The indentation of an entry on a line of its own, if the array has no other entry as a model.
const INDENT: &str = "  ";

/// The text around the entries of an array, without the commas: one text before each entry, and one after the last
/// entry. A comment behind an entry is at the beginning of the text after it, up to the end of the line.
struct Gaps(Vec<String>);

impl Gaps {
    fn of(array: &Array) -> Self {
        let (mut gaps, mut before) = (Vec::new(), String::new());
        for (index, value) in array.iter().enumerate() {
            // A new value has no layout of its own yet.
            let default = if index == 0 { "" } else { " " };
            let prefix = value.decor().prefix().map_or(default, text);
            gaps.push(before + prefix);
            before = value.decor().suffix().map(text).unwrap_or_default().to_owned();
        }
        gaps.push(before + text(array.trailing()));
        Self(gaps)
    }

    fn write_to(self, array: &mut Array) {
        let mut gaps = self.0.into_iter();
        for value in array.iter_mut() {
            value.decor_mut().set_prefix(gaps.next().unwrap_or_default());
            value.decor_mut().set_suffix("");
        }
        array.set_trailing(gaps.next().unwrap_or_default());
    }
}

/// Returns the text of a part of a document whose parts hold their own texts, as those of a [`toml_edit::DocumentMut`] do.
fn text(raw: &RawString) -> &str {
    raw.as_str().unwrap_or_default()
}

/// Adds an entry behind the last one, on a line of its own if the array has one line for each entry. Comments stay
/// above it.
pub(super) fn push(array: &mut Array, entry: &str) {
    let Gaps(mut gaps) = Gaps::of(array);
    let end = gaps.pop().unwrap_or_default();
    let indent = gaps.iter().rev().find_map(|gap| Some(gap.rsplit_once('\n')?.1.to_owned()));
    let (before, after) = match (end.rsplit_once('\n'), &indent) {
        (Some((comments, closing)), _) => {
            let indent = indent.unwrap_or_else(|| format!("{closing}{INDENT}"));
            (format!("{comments}\n{indent}"), format!("\n{closing}"))
        }
        (None, Some(indent)) if gaps.last().is_some_and(|gap| gap.contains('\n')) => {
            (format!("\n{indent}"), end)
        }
        (None, _) if gaps.is_empty() => (String::new(), String::new()),
        (None, _) => (" ".to_owned(), end),
    };
    gaps.extend([before, after]);
    array.push_formatted(Value::from(entry));
    Gaps(gaps).write_to(array);
}

/// Removes the entry with this index, together with the comment behind it on its line. Comments on other lines stay.
pub(super) fn remove(array: &mut Array, index: usize) {
    let Gaps(mut gaps) = Gaps::of(array);
    if index + 1 >= gaps.len() {
        return;
    }
    let (before, after) = (gaps.remove(index), gaps.remove(index));
    let is_last = index == gaps.len();
    let merged = match (before.split_once('\n'), after.split_once('\n')) {
        // What follows is on the line of the entry.
        (_, None) if !is_last => before,
        (_, None) if before.contains('#') => before.trim_end().to_owned() + "\n",
        (_, None) => after,
        // The comment behind the entry is also behind the entry before it, on the same line.
        (None, Some(_)) => after,
        (Some((of_previous, lines)), Some((_, following))) => {
            let above = lines.rsplit_once('\n').map(|(above, _)| format!("{above}\n")).unwrap_or_default();
            format!("{of_previous}\n{above}{following}")
        }
    };
    gaps.insert(index, merged);
    array.remove(index);
    if array.is_empty() && gaps.iter().all(|gap| gap.trim().is_empty()) {
        gaps = vec![String::new()];
    }
    Gaps(gaps).write_to(array);
}

#[cfg(test)]
mod tests {
    use toml_edit::DocumentMut;

    use super::*;

    fn edited(text: &str, edit: impl Fn(&mut Array)) -> String {
        let mut document: DocumentMut = format!("x = {text}\n").parse().unwrap();
        edit(document["x"].as_array_mut().unwrap());
        let text = document.to_string();
        assert!(text.parse::<DocumentMut>().is_ok(), "{text}");
        text.strip_prefix("x = ").unwrap().trim_end().to_owned()
    }

    #[test]
    fn an_entry_is_added_in_the_layout_of_the_others() {
        for (before, after) in [
            ("[]", "[\"new\"]"),
            ("[ ]", "[\"new\"]"),
            ("[\"a\"]", "[\"a\", \"new\"]"),
            ("[ \"a\" ]", "[ \"a\", \"new\" ]"),
            ("[\"a\",]", "[\"a\", \"new\",]"),
            ("[\n    \"a\",  # one\n]", "[\n    \"a\",  # one\n    \"new\",\n]"),
            ("[\n  \"a\",\n  \"b\" # two\n]", "[\n  \"a\",\n  \"b\", # two\n  \"new\"\n]"),
            ("[\n  \"a\",\n  # \"b\",\n]", "[\n  \"a\",\n  # \"b\",\n  \"new\",\n]"),
            ("[\n  # \"b\",\n]", "[\n  # \"b\",\n  \"new\"\n]"),
            ("[\n  \"a\",\n  \"b\"]", "[\n  \"a\",\n  \"b\",\n  \"new\"]"),
        ] {
            assert_eq!(edited(before, |array| push(array, "new")), after, "{before}");
        }
    }

    #[test]
    fn an_entry_is_removed_with_the_comment_on_its_line_only() {
        for (before, index, after) in [
            ("[\"a\"]", 0, "[]"),
            ("[\"a\", \"b\"]", 0, "[\"b\"]"),
            ("[\"a\", \"b\"]", 1, "[\"a\"]"),
            ("[\"a\", \"b\", \"c\"]", 1, "[\"a\", \"c\"]"),
            ("[\n  \"a\", # one\n  \"b\", # two\n]", 0, "[\n  \"b\", # two\n]"),
            ("[\n  \"a\", # one\n  \"b\", # two\n]", 1, "[\n  \"a\", # one\n]"),
            ("[\n  \"a\",\n  \"b\"\n]", 1, "[\n  \"a\"\n]"),
            ("[\n  # A.\n  \"a\",\n  # B.\n  \"b\",\n]", 0, "[\n  # A.\n  # B.\n  \"b\",\n]"),
            ("[\n  \"a\", \"b\", # both\n]", 1, "[\n  \"a\", # both\n]"),
            ("[\n  # all\n  \"a\"]", 0, "[\n  # all\n]"),
        ] {
            assert_eq!(edited(before, |array| remove(array, index)), after, "{before}");
        }
    }
}
