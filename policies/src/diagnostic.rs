//! Errors and warnings about files that users write, such as policies: the location, what is wrong, and what to do.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use crate::printable::{printable, truncate_chars};
use crate::source::Source;
use crate::source_excerpt::SourceExcerpt;

/// The maximum number of errors or warnings that are described for one document. Further errors and warnings are only
/// counted.
pub const DIAGNOSTICS_MAX: usize = 50;

/// The maximum length of a diagnostic's title, label or help text, in characters. Longer texts are truncated, because
/// these texts may quote the file.
const MESSAGE_CHARS_MAX: usize = 500;

/// An error or warning about a file that a user wrote. The texts of a diagnostic contain no control characters, even if
/// the file does.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    path: String,
    excerpt: Option<SourceExcerpt>,
    title: String,
    label: String,
    help: Option<String>,
    is_warning: bool,
}

impl Diagnostic {
    /// Creates an error about the byte range `span` of the source, or about the whole file if `span` is `None`. A
    /// range outside the text is moved to the nearest valid one. `title` says what is wrong; `label` is shown
    /// beside the caret that marks the range.
    #[must_use]
    pub fn new(
        source: &Source,
        span: Option<Range<usize>>,
        title: impl Into<String>,
        label: impl Into<String>,
    ) -> Self {
        Self {
            path: sanitize(&source.path),
            excerpt: span.map(|span| SourceExcerpt::new(&source.text, &span)),
            title: sanitize(&title.into()),
            label: sanitize(&label.into()),
            help: None,
            is_warning: false,
        }
    }

    /// Turns this diagnostic from an error into a warning. A warning means: the file is valid, but may not do what its
    /// author intended.
    #[must_use]
    pub fn as_warning(mut self) -> Self {
        self.is_warning = true;
        self
    }

    /// Adds a help text, which says what the reader can do about the error.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(sanitize(&help.into()));
        self
    }

    /// Returns the name of the file that the diagnostic is about.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the title, which says what is wrong.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Returns the help text, which says what the reader can do about the error; `None` if the diagnostic has no help
    /// text.
    #[must_use]
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// Returns the text beside the caret that marks the error; empty when the title says enough.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Returns the line that the diagnostic points at, counted from 1; `None` if the diagnostic is about the whole
    /// file.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.excerpt.as_ref().map(|excerpt| excerpt.line)
    }

    /// Returns the column that the diagnostic points at, counted from 1 in characters; `None` if the diagnostic is
    /// about the whole file.
    #[must_use]
    pub fn column(&self) -> Option<usize> {
        self.excerpt.as_ref().map(|excerpt| excerpt.column)
    }

    /// Renders the diagnostic on one line, in the form that compilers write and editors parse: `FILE:LINE:COLUMN:
    /// error: TITLE: LABEL; HELP`, or with `warning` in place of `error`.
    #[must_use]
    pub fn to_single_line(&self) -> String {
        let location = self.excerpt.as_ref().map(|excerpt| format!(":{}:{}", excerpt.line, excerpt.column));
        let label = if self.label.is_empty() { String::new() } else { format!(": {}", self.label) };
        let help = self.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
        let kind = if self.is_warning { "warning" } else { "error" };
        format!("{}{}: {kind}: {}{label}{help}", self.path, location.unwrap_or_default(), self.title)
    }

    /// Renders the diagnostic on several lines: title, file, the marked line and help text. `colour` adds ANSI
    /// colours.
    #[must_use]
    pub fn render(&self, colour: bool) -> String {
        let level = if self.is_warning { Level::WARNING } else { Level::ERROR };
        let mut group = Group::with_title(level.primary_title(&self.title));
        match &self.excerpt {
            Some(excerpt) => {
                let mark = AnnotationKind::Primary.span(excerpt.marked.clone()).label(&self.label);
                let snippet = Snippet::source(&excerpt.text).line_start(excerpt.line).annotation(mark);
                group = if excerpt.is_cut {
                    // The renderer counts columns from the start of its text, so the column of a cut line is set here.
                    let origin = Origin::path(&self.path).line(excerpt.line).char_column(excerpt.column);
                    group.element(origin).element(snippet)
                } else {
                    group.element(snippet.path(&self.path))
                };
            }
            None => {
                group = group.element(Origin::path(&self.path));
                if !self.label.is_empty() {
                    group = group.element(Level::NOTE.message(&self.label));
                }
            }
        }
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help));
        }
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        renderer.render(&[group])
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

/// Errors and warnings about files that a user wrote. `Display` renders them without colour.
#[derive(Clone, Debug)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostics {
    /// Renders all errors and warnings, separated by empty lines. `colour` adds ANSI colours.
    #[must_use]
    pub fn render(&self, colour: bool) -> String {
        self.0.iter().map(|diagnostic| diagnostic.render(colour)).collect::<Vec<_>>().join("\n\n")
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Self {
        Self(vec![diagnostic])
    }
}

/// Collects the errors of a policy document while it is parsed. It keeps the first [`DIAGNOSTICS_MAX`] errors
/// and only counts the others.
pub(crate) struct DiagnosticCollector<'s> {
    source: &'s Source,
    found: Vec<(usize, Diagnostic)>,
    left_out: usize,
}

impl<'s> DiagnosticCollector<'s> {
    pub(crate) fn new(source: &'s Source) -> Self {
        Self { source, found: Vec::new(), left_out: 0 }
    }

    pub(crate) fn add(
        &mut self,
        span: Range<usize>,
        title: impl Into<String>,
        label: &str,
        help: impl Into<String>,
    ) {
        if self.found.len() >= DIAGNOSTICS_MAX {
            self.left_out += 1;
            return;
        }
        let diagnostic = Diagnostic::new(self.source, Some(span.clone()), title, label).with_help(help);
        self.found.push((span.start, diagnostic));
    }

    pub(crate) fn into_result(mut self) -> Result<(), Diagnostics> {
        if self.found.is_empty() {
            return Ok(());
        }
        self.found.sort_by_key(|(start, _)| *start);
        let mut all: Vec<_> = self.found.into_iter().map(|(_, diagnostic)| diagnostic).collect();
        if self.left_out > 0 {
            let title = format!("there are {} more errors", self.left_out);
            all.push(
                Diagnostic::new(self.source, None, title, "").with_help("correct the errors above first"),
            );
        }
        Err(Diagnostics(all))
    }
}

fn sanitize(text: &str) -> String {
    printable(&truncate_chars(text, MESSAGE_CHARS_MAX))
}
