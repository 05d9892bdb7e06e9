//! Quotes words of the command lines that Lockhouse shows.

/// Quotes a word for a POSIX shell.
pub fn shell_quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::shell_quote;

    #[test]
    fn a_shell_reads_a_quoted_word_as_it_was() {
        for (word, expected) in [
            ("/a/b-c.toml", "/a/b-c.toml"),
            ("/my files/c", "'/my files/c'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
            ("$a", "'$a'"),
        ] {
            assert_eq!(shell_quote(word), expected);
        }
    }
}
