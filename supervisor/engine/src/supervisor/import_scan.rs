//! Guesses from the text of a Python program whether it imports a package, so that it gets a worker that has the
//! packages.
//!
//! The text is only scanned for words and not parsed, because untrusted code is parsed only in a sandboxed worker. A
//! program that is taken for one with packages runs as well, only slower. A program whose import the scan does not find
//! gets an error that tells it to write the import as a statement.

use std::collections::BTreeSet;

/// Maximum number of bytes of a program that are scanned for imports; the rest of a longer program is ignored.
/// Bound: workers and programs.
const SCANNED_BYTES_MAX: usize = 256 * 1024;

/// Whether a line of the code has one of the words `modules` after a word that begins an import: `import`, `from`,
/// `__import__` or `import_module`.
pub(super) fn mentions_import(code: &str, modules: &BTreeSet<String>) -> bool {
    let scanned = &code[..code.floor_char_boundary(SCANNED_BYTES_MAX)];
    scanned.lines().any(|line| {
        let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.any(begins_import) && words.any(|word| modules.contains(word))
    })
}

fn begins_import(word: &str) -> bool {
    matches!(word, "import" | "from" | "__import__" | "import_module")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_found_in_every_form() {
        let modules = BTreeSet::from(["pandas", "numpy"].map(str::to_owned));
        for (code, expected) in [
            ("import pandas", true),
            ("x = 1\n  import os, numpy as np", true),
            ("from pandas.io import json", true),
            ("if 1: import\tpandas;", true),
            ("m = importlib.import_module('numpy')", true),
            ("__import__(\"pandas\")", true),
            ("exec('import pandas')", true),
            ("from mcp_tools.github import pandas", true),
            ("```python\r\nimport numpy\r\n```", true),
            ("1 + 1", false),
            ("pandas = 1\nprint(pandas)", false),
            ("import pandas_like", false),
            ("important pandas", false),
            ("import os\npandas", false),
            ("", false),
        ] {
            assert_eq!(mentions_import(code, &modules), expected, "{code:?}");
        }
        assert!(!mentions_import("import pandas", &BTreeSet::new()));
        let late = format!("{}\nimport pandas", "é".repeat(SCANNED_BYTES_MAX));
        assert!(!mentions_import(&late, &modules), "the scan is bounded");
    }
}
