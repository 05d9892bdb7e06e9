//! Rows in columns.

/// Lines up columns; the last one may be as long as it likes. What is in a cell cannot leave it.
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

#[cfg(test)]
mod tests {
    #[test]
    fn columns_line_up() {
        let rows = [vec!["a".to_owned(), "long one".to_owned()], vec!["bbb".to_owned(), String::new()]];
        assert_eq!(super::render(&["x", "y"], &rows), "x    y\n---  --------\na    long one\nbbb");
    }
}
