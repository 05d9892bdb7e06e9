//! Positions in generated code, and where they come from in the submitted code.

use std::collections::BTreeMap;

use super::calls::Calls;

/// Lines of generated code before the imports.
const LINES_BEFORE_IMPORTS: u32 = 1;

/// A position as people count: both from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// From 1.
    pub(super) line: u32,
    /// From 1, in characters.
    pub(super) column: u32,
}

impl Place {
    /// The place of a byte.
    pub(super) fn of(source: &str, byte: usize) -> Self {
        let before = &source[..source.floor_char_boundary(byte)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = 1 + before.bytes().filter(|&byte| byte == b'\n').count();
        let column = 1 + before[line_start..].chars().count();
        Self { line: count(line), column: count(column) }
    }

    /// The byte at a place; None beyond the text.
    pub(super) fn byte(self, source: &str) -> Option<usize> {
        let above: usize =
            source.split_inclusive('\n').take(self.line.checked_sub(1)? as usize).map(str::len).sum();
        let line = source.get(above..)?.split('\n').next()?;
        let within = line.char_indices().nth(self.column.saturating_sub(1) as usize);
        Some(above + within.map_or(line.len(), |(byte, _)| byte))
    }
}

/// One entry of a source map: line and column from 0, columns in UTF-16 units.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mapping {
    pub(super) generated: (u32, u32),
    pub(super) submitted: (u32, u32),
}

/// Programs of a session whose positions are kept.
const EARLIER_MAX: usize = 32;

/// The way back from generated code.
pub(super) struct Positions {
    /// Which of its session it is.
    run: Option<u32>,
    /// Of programs before it in the session, the latest first.
    earlier: Vec<Positions>,
    source: String,
    imports: Vec<Place>,
    mappings: Vec<Mapping>,
    calls: Calls,
    /// Of the skills that it has imported.
    skills: BTreeMap<String, Positions>,
}

impl Positions {
    /// `imports` are the places of those imports that became the first lines; `mappings` are in the order of the
    /// generated code.
    pub(super) fn new(
        source: &str,
        imports: Vec<Place>,
        calls: Calls,
        mappings: impl Iterator<Item = Mapping>,
    ) -> Self {
        let (source, mappings) = (source.to_owned(), mappings.collect());
        Self { run: None, earlier: Vec::new(), source, imports, mappings, calls, skills: BTreeMap::new() }
    }

    /// The program as it was submitted.
    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// Of an earlier program of the session.
    pub(super) fn earlier(&self, run: u32) -> Option<&Self> {
        self.earlier.iter().find(|positions| positions.run == Some(run))
    }

    /// The place of the call, where a place is within its arguments; with `thrown_alone` of one that makes what is thrown.
    pub(super) fn of_call(&self, place: Place, thrown_alone: bool) -> Place {
        let byte = place.byte(&self.source).and_then(|byte| u32::try_from(byte).ok());
        let name = byte.and_then(|byte| self.calls.around(byte, thrown_alone));
        name.map_or(place, |name| self.of_byte(name))
    }

    /// A skill is imported.
    pub(super) fn add_skill(&mut self, name: String, positions: Self) {
        self.skills.insert(name, positions);
    }

    /// Of a skill that was imported, by this program or one before it.
    pub(super) fn skill(&self, name: &str) -> Option<&Self> {
        let here = self.skills.get(name);
        here.or_else(|| self.earlier.iter().find_map(|positions| positions.skills.get(name)))
    }

    /// Those of a session's program, after the ones before it.
    pub(super) fn after(mut self, run: u32, before: Option<Self>) -> Self {
        self.run = Some(run);
        if let Some(mut before) = before {
            self.earlier = std::mem::take(&mut before.earlier);
            self.earlier.insert(0, before);
            self.earlier.truncate(EARLIER_MAX);
        }
        self
    }

    /// Where a place of the generated code of a session's run comes from, and which run that is if it is an earlier one.
    pub(super) fn submitted_in(&self, run: Option<u32>, generated: Place) -> Option<(Option<u32>, Place)> {
        if run == self.run {
            return Some((None, self.submitted(generated)?));
        }
        let of = self.earlier.iter().find(|positions| positions.run == run)?;
        Some((run, of.submitted(generated)?))
    }

    /// Where a place of the generated code comes from.
    pub(super) fn submitted(&self, generated: Place) -> Option<Place> {
        let line = generated.line.checked_sub(1 + LINES_BEFORE_IMPORTS)?;
        if let Some(import) = self.imports.get(line as usize) {
            return Some(*import);
        }
        let target = (line - count(self.imports.len()), generated.column.saturating_sub(1));
        let after = self.mappings.partition_point(|mapping| mapping.generated <= target);
        // The nearest entry before it on the same line; else the first one of the line.
        let on_line = |mapping: &&Mapping| mapping.generated.0 == target.0;
        let before = after.checked_sub(1).and_then(|index| self.mappings.get(index)).filter(on_line);
        let (line, units) = before.or_else(|| self.mappings.get(after).filter(on_line))?.submitted;
        Some(Place { line: line + 1, column: self.characters(line, units) + 1 })
    }

    /// The place of a byte of the submitted code.
    pub(super) fn of_byte(&self, byte: u32) -> Place {
        Place::of(&self.source, byte as usize)
    }

    /// How many characters of a line a number of UTF-16 units is.
    fn characters(&self, line: u32, units: u32) -> u32 {
        let text = self.source.split('\n').nth(line as usize).unwrap_or_default();
        let mut left = units as usize;
        let fits = |character: &char| {
            let fits = left >= character.len_utf16();
            left = left.saturating_sub(character.len_utf16());
            fits
        };
        count(text.chars().take_while(fits).count())
    }
}

/// Source text is far shorter than 4 GiB.
fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
