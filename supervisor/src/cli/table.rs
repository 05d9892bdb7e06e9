//! Renders the tables that commands print, within the width of the terminal.

mod column_widths;

use super::line_width::{columns, display_width, wrap};

/// The number of spaces between two columns.
const GAP: usize = 2;

/// Renders rows in aligned columns. Replaces control characters and invisible characters in cells with U+FFFD.
///
/// A table that is wider than the terminal is wrapped at spaces within its cells, so that names and ids stay whole. If
/// the terminal is too narrow for the words of all columns, each row becomes a block with a line for each cell.
pub(crate) fn render(head: &[&str], rows: &[Vec<String>]) -> String {
    render_within(columns(), head, rows)
}

/// Renders rows in lines of at most `width` columns.
fn render_within(width: usize, head: &[&str], rows: &[Vec<String>]) -> String {
    let cells = |row: &Vec<String>| row.iter().map(|cell| lockhouse_policies::printable(cell)).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let head: Vec<String> = head.iter().map(|name| (*name).to_owned()).collect();
    match column_widths::fit(&head, &rows, width) {
        Some(widths) => render_columns(&head, &rows, &widths),
        None => render_blocks(&head, &rows, width),
    }
}

fn render_columns(head: &[String], rows: &[Vec<String>], widths: &[usize]) -> String {
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    let mut lines = render_row(head, widths);
    lines.push(rule.join(&" ".repeat(GAP)));
    lines.extend(rows.iter().flat_map(|row| render_row(row, widths)));
    lines.join("\n")
}

/// Renders one row. The row has as many lines as its highest cell.
fn render_row(row: &[String], widths: &[usize]) -> Vec<String> {
    let cells: Vec<Vec<String>> = row.iter().zip(widths).map(|(cell, width)| wrap(cell, *width)).collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(0);
    let line = |number: usize| {
        let parts = cells.iter().zip(widths).map(|(cell, width)| pad(cell.get(number), *width));
        parts.collect::<Vec<_>>().join(&" ".repeat(GAP)).trim_end().to_owned()
    };
    (0..height).map(line).collect()
}

fn pad(text: Option<&String>, width: usize) -> String {
    let text = text.map_or("", String::as_str);
    format!("{text}{}", " ".repeat(width.saturating_sub(display_width(text))))
}

/// Renders each row as a block: one line for each cell that is not empty, after the name of its column. An empty line
/// separates the blocks.
fn render_blocks(head: &[String], rows: &[Vec<String>], width: usize) -> String {
    let names = head.iter().map(|name| display_width(name)).max().unwrap_or(0);
    let block = |row: &Vec<String>| {
        let named = head.iter().zip(row).filter(|(_, cell)| !cell.is_empty());
        let cell = |(name, cell): (&String, &String)| {
            let widths = [names, width.saturating_sub(names + GAP)];
            render_row(&[name.clone(), cell.clone()], &widths)
        };
        named.flat_map(cell).collect::<Vec<_>>().join("\n")
    };
    rows.iter().map(block).collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[&[&str]]) -> Vec<Vec<String>> {
        rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect()
    }

    #[test]
    fn columns_line_up() {
        let rows = rows(&[&["a", "long one"], &["bbb", ""], &["日本", "c"]]);
        let table = "x     y\n----  --------\na     long one\nbbb\n日本  c";
        assert_eq!(render_within(80, &["x", "y"], &rows), table);
    }

    #[test]
    fn a_wide_table_is_wrapped_at_spaces() {
        let rows = rows(&[&["github", "create_pull_request", "Creates a pull request in a repository"]]);
        let table = "\
server  tool                 summary
------  -------------------  -----------------
github  create_pull_request  Creates a pull
                             request in a
                             repository";
        assert_eq!(render_within(46, &["server", "tool", "summary"], &rows), table);
    }

    #[test]
    fn rows_become_blocks_if_the_words_of_the_columns_do_not_fit_side_by_side() {
        let id = "0190163d-8694-739b-aea5-966c26f8ad91";
        let rows = rows(&[&[id, "", "waits for the approval of a person"], &[id, "me", "runs"]]);
        let blocks = format!(
            "\
execution  {id}
state      waits for the approval of a person

execution  {id}
client     me
state      runs"
        );
        assert_eq!(render_within(50, &["execution", "client", "state"], &rows), blocks);
    }

    #[test]
    fn no_line_is_longer_than_the_terminal_is_wide() {
        let long = "x".repeat(300);
        let rows =
            rows(&[&[&long, "several words in one cell", "日本語".repeat(60).as_str()], &["", "", ""]]);
        for width in [40, 41, 80, 200] {
            let table = render_within(width, &["a", "b", "c"], &rows);
            let widest = table.lines().map(display_width).max();
            assert!(widest <= Some(width), "{width}: {table}");
            let kept: usize = table.matches('x').count();
            assert_eq!(kept, long.len(), "{width}: {table}");
        }
    }
}
