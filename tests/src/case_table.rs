//! A test of many cases, which prints a pass/FAIL line for each case.

/// The cases of a test with their outcomes.
#[derive(Debug)]
pub struct Table {
    title: String,
    rows: Vec<(String, Result<(), String>)>,
}

impl Table {
    /// Creates an empty table.
    #[must_use]
    pub fn new(title: &str) -> Self {
        Self { title: title.to_owned(), rows: Vec::new() }
    }

    /// Adds a case with its outcome.
    pub fn row(&mut self, name: impl Into<String>, outcome: Result<(), String>) {
        self.rows.push((name.into(), outcome));
    }

    /// Prints the table.
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

/// Returns the outcome of a case whose condition is `holds`.
///
/// # Errors
/// `found`, formatted, if the condition is false.
pub fn ensure(holds: bool, found: impl std::fmt::Debug) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("{found:?}")) }
}

/// Returns the outcome of a case that expects two equal values.
///
/// # Errors
/// Both values, formatted, if they differ.
pub fn equal<T: PartialEq + std::fmt::Debug>(found: T, expected: T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{found:?} instead of {expected:?}")) }
}
