//! Writes tables as CSV (RFC 4180).

/// Returns the lines of a table with a head.
pub(super) fn lines(subject: &str, columns: &[&str], rows: &[Vec<String>]) -> String {
    let head = std::iter::once(subject).chain(columns.iter().copied()).map(field);
    let rows = rows.iter().map(|row| row.iter().map(|cell| field(cell)).collect::<Vec<_>>().join(","));
    let mut text = head.collect::<Vec<_>>().join(",");
    for row in rows {
        text.push_str("\r\n");
        text.push_str(&row);
    }
    text + "\r\n"
}

/// Returns a field, in quotes if it needs them. An AI client chooses its name: a spreadsheet program must not take it for a
/// formula.
fn field(cell: &str) -> String {
    let is_formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && cell != "-";
    let cell = if is_formula { format!("'{cell}") } else { cell.to_owned() };
    match cell.contains(['"', ',', '\r', '\n']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_and_no_formula() {
        for (cell, expected) in [
            ("ada", "ada"),
            ("-", "-"),
            ("a,b", "\"a,b\""),
            ("a\"b", "\"a\"\"b\""),
            ("a\nb", "\"a\nb\""),
            ("=1+1", "'=1+1"),
            ("@x,\"", "\"'@x,\"\"\""),
            ("-1", "'-1"),
        ] {
            assert_eq!(field(cell), expected, "{cell}");
        }
        assert_eq!(lines("client", &["runs"], &[vec!["a".into(), "1".into()]]), "client,runs\r\na,1\r\n");
    }
}
