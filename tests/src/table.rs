//! A test of many rows, each told as it passed or failed.

/// The rows so far.
#[derive(Debug)]
pub struct Table {
    title: String,
    rows: Vec<(String, Result<(), String>)>,
}

impl Table {
    /// An empty one.
    #[must_use]
    pub fn new(title: &str) -> Self {
        Self { title: title.to_owned(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, name: impl Into<String>, outcome: Result<(), String>) {
        self.rows.push((name.into(), outcome));
    }

    /// Prints the table.
    ///
    /// # Panics
    /// If a row failed, or there is none.
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

/// An outcome: whether it holds, and what was found if it does not.
///
/// # Errors
/// What was found.
pub fn ensure(holds: bool, found: impl std::fmt::Debug) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("{found:?}")) }
}

/// An outcome: whether both are the same.
///
/// # Errors
/// Both.
pub fn equal<T: PartialEq + std::fmt::Debug>(found: T, expected: T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{found:?} instead of {expected:?}")) }
}
