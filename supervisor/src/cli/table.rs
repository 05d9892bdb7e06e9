//! Renders the tables that commands print.

/// Renders rows in aligned columns, without a limit on the width of a column. Replaces control characters and invisible
/// characters in cells with U+FFFD.
pub(crate) fn render(head: &[&str], rows: &[Vec<String>]) -> String {
    let cells = |row: &Vec<String>| row.iter().map(|cell| lockhouse_policies::printable(cell)).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([head[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: Vec<&str>| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let mut lines = vec![line(head.to_vec())];
    lines.push(widths.iter().map(|width| "-".repeat(*width)).collect::<Vec<_>>().join("  "));
    lines.extend(rows.iter().map(|row| line(row.iter().map(String::as_str).collect())));
    lines.join("\n")
}

/// Renders rows in aligned columns. Long cells are wrapped, so that the table fits the width in the environment
/// variable COLUMNS, or else [`WIDTH`].
pub(crate) fn render_wrapped(head: &[&str], rows: &[Vec<String>]) -> String {
    use comfy_table::{ContentArrangement, Table, presets};
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(columns.filter(|columns| *columns >= WIDTH_MIN).unwrap_or(WIDTH));
    table.set_header(head);
    for row in rows {
        table.add_row(row.iter().map(|cell| lockhouse_policies::printable(cell)));
    }
    table.to_string()
}

/// The width of a table in characters if the environment variable COLUMNS is not set or is too small.
const WIDTH: u16 = 150;
const WIDTH_MIN: u16 = 100;

#[cfg(test)]
mod tests {
    #[test]
    fn columns_line_up() {
        let rows = [vec!["a".to_owned(), "long one".to_owned()], vec!["bbb".to_owned(), String::new()]];
        assert_eq!(super::render(&["x", "y"], &rows), "x    y\n---  --------\na    long one\nbbb");
    }
}
