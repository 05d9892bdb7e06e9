//! Errors in files that people write: where, what, and what to do.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use crate::excerpt::Excerpt;
use crate::printable::{clipped, printable};
use crate::source::Source;

/// How many errors of one document are kept; of more, only the number is said.
pub const DIAGNOSTICS_MAX: usize = 50;

/// The longest title, label or help that is shown, in characters: they may quote the file.
const MESSAGE_CHARS_MAX: usize = 500;

/// One error in a file. What it shows is free of control characters, whatever the file has.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    path: String,
    excerpt: Option<Excerpt>,
    title: String,
    label: String,
    help: Option<String>,
    is_warning: bool,
}

impl Diagnostic {
    /// An error at a byte range of the source's text, or with `None` about the file as a whole. Any range is fine: it
    /// is moved to the nearest characters. The title says what is wrong, the label stands beside the caret.
    #[must_use]
    pub fn new(
        source: &Source,
        span: Option<Range<usize>>,
        title: impl Into<String>,
        label: impl Into<String>,
    ) -> Self {
        Self {
            path: shown(&source.path),
            excerpt: span.map(|span| Excerpt::of(&source.text, &span)),
            title: shown(&title.into()),
            label: shown(&label.into()),
            help: None,
            is_warning: false,
        }
    }

    /// As a warning: the file can be used, and may not do what its author meant.
    #[must_use]
    pub fn as_warning(mut self) -> Self {
        self.is_warning = true;
        self
    }

    /// Adds what the reader can do about it.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(shown(&help.into()));
        self
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What is wrong.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// What the reader can do about it.
    #[must_use]
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// What stands beside the caret; empty where the title says it all.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The line it points at, counted from 1.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.excerpt.as_ref().map(|excerpt| excerpt.line)
    }

    /// The column of that line, counted from 1, in characters.
    #[must_use]
    pub fn column(&self) -> Option<usize> {
        self.excerpt.as_ref().map(|excerpt| excerpt.column)
    }

    /// On one line, as compilers tell it and editors read it: `FILE:LINE:COLUMN: error: TITLE: LABEL; HELP`,
    /// or `warning` in place of `error`.
    #[must_use]
    pub fn short(&self) -> String {
        let place = self.excerpt.as_ref().map(|excerpt| format!(":{}:{}", excerpt.line, excerpt.column));
        let label = if self.label.is_empty() { String::new() } else { format!(": {}", self.label) };
        let help = self.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
        let kind = if self.is_warning { "warning" } else { "error" };
        format!("{}{}: {kind}: {}{label}{help}", self.path, place.unwrap_or_default(), self.title)
    }

    /// As text for a person: file, line, caret and help. `colour` adds ANSI escapes.
    #[must_use]
    pub fn render(&self, colour: bool) -> String {
        let level = if self.is_warning { Level::WARNING } else { Level::ERROR };
        let mut group = Group::with_title(level.primary_title(&self.title));
        match &self.excerpt {
            Some(excerpt) => {
                let mark = AnnotationKind::Primary.span(excerpt.marked.clone()).label(&self.label);
                let snippet = Snippet::source(&excerpt.text).line_start(excerpt.line).annotation(mark);
                group = if excerpt.is_cut {
                    // The renderer counts columns from where its text starts, so here it has to be told.
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

/// All errors of a file, in the order of its text. Its `Display` renders them without colour.
#[derive(Clone, Debug)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostics {
    /// Each error as [`Diagnostic::render`] has it, separated by empty lines.
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

/// The errors found so far, while a document is read.
pub(crate) struct Findings<'s> {
    source: &'s Source,
    found: Vec<(usize, Diagnostic)>,
    left_out: usize,
}

impl<'s> Findings<'s> {
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
            all.push(Diagnostic::new(self.source, None, title, "").with_help("correct the ones above first"));
        }
        Err(Diagnostics(all))
    }
}

fn shown(text: &str) -> String {
    printable(&clipped(text, MESSAGE_CHARS_MAX))
}
