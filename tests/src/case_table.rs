//! A test with many cases, which prints a line with `pass` or `FAIL` for each case.

/// The cases of a test with their outcomes, which are printed as a table.
#[derive(Debug)]
pub struct Table {
    title: String,
    rows: Vec<(String, Result<(), String>)>,
}

impl Table {
    /// Creates a table without test cases.
    #[must_use]
    pub fn new(title: &str) -> Self {
        Self { title: title.to_owned(), rows: Vec::new() }
    }

    /// Adds a test case with its outcome; `Err` says why the case failed.
    pub fn row(&mut self, name: impl Into<String>, outcome: Result<(), String>) {
        self.rows.push((name.into(), outcome));
    }

    /// Prints the table of test cases.
    ///
    /// # Panics
    /// If a case failed, or the table has no cases.
    pub fn finish(self) {
        let width = self.rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        let mut text = format!("{}\n", self.title);
        for (name, outcome) in &self.rows {
            let line = match outcome {
                Ok(()) => format!("  pass  {name}\n"),
                Err(reason) => format!("  FAIL  {name:width$}  {reason}\n"),
            };
            text.push_str(&line);
        }
        println!("{text}");
        let failed = self.rows.iter().filter(|(_, outcome)| outcome.is_err()).count();
        assert!(!self.rows.is_empty(), "{}: no rows", self.title);
        assert!(failed == 0, "{}: {failed} of {} rows failed\n{text}", self.title, self.rows.len());
    }
}

/// Returns the outcome of a test case that requires `holds` to be true.
///
/// # Errors
/// The value `found`, formatted as text, if `holds` is false.
pub fn ensure(holds: bool, found: impl std::fmt::Debug) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("{found:?}")) }
}

/// Returns the outcome of a test case that expects `found` to equal `expected`.
///
/// # Errors
/// Both values, formatted as text, if they differ.
pub fn equal<T: PartialEq + std::fmt::Debug>(found: T, expected: T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{found:?} instead of {expected:?}")) }
}
