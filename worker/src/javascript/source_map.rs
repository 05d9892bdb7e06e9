//! Maps positions in generated code to positions in the submitted code.

use std::collections::BTreeMap;

use super::call_positions::CallPositions;

/// Number of lines of the generated code before the lines of the imports.
const LINES_BEFORE_IMPORTS: u32 = 1;

/// A position in source code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    /// Line number, from 1.
    pub(super) line: u32,
    /// Column in characters, from 1.
    pub(super) column: u32,
}

impl Position {
    /// Returns the position of a byte offset in `source`.
    pub(super) fn from_byte(source: &str, byte: usize) -> Self {
        let before = &source[..source.floor_char_boundary(byte)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = 1 + before.bytes().filter(|&byte| byte == b'\n').count();
        let column = 1 + before[line_start..].chars().count();
        Self { line: to_u32(line), column: to_u32(column) }
    }

    /// Returns the byte offset of the position in `source`. A position beyond the end of its line or of the text gives
    /// the offset of that end. Returns `None` only for line 0.
    pub(super) fn to_byte(self, source: &str) -> Option<usize> {
        let above: usize =
            source.split_inclusive('\n').take(self.line.checked_sub(1)? as usize).map(str::len).sum();
        let line = source.get(above..)?.split('\n').next()?;
        let within = line.char_indices().nth(self.column.saturating_sub(1) as usize);
        Some(above + within.map_or(line.len(), |(byte, _)| byte))
    }
}

/// An entry of the source map: a position in the generated code and the position in the submitted code. Lines
/// and columns count from 0, columns in UTF-16 code units.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mapping {
    pub(super) generated: (u32, u32),
    pub(super) submitted: (u32, u32),
}

/// Maximum number of earlier programs of a session whose source maps are kept.
const EARLIER_MAX: usize = 32;

/// Source map of a program. Also contains the source maps of earlier programs of the session and of imported skills,
/// because functions of these can appear in the program's stack traces.
pub(super) struct SourceMap {
    /// Number of the run in the session that executes this program; `None` outside of sessions.
    run: Option<u32>,
    /// Source maps of earlier runs of the session, most recent first.
    earlier: Vec<SourceMap>,
    source: String,
    imports: Vec<Position>,
    mappings: Vec<Mapping>,
    calls: CallPositions,
    /// Source maps of imported skills.
    skills: BTreeMap<String, SourceMap>,
}

impl SourceMap {
    /// Creates a source map. `imports` are the positions of the submitted imports, each of which became one line
    /// at the start of the generated code. `mappings` must be sorted by generated position.
    pub(super) fn new(
        source: &str,
        imports: Vec<Position>,
        calls: CallPositions,
        mappings: impl Iterator<Item = Mapping>,
    ) -> Self {
        let (source, mappings) = (source.to_owned(), mappings.collect());
        Self { run: None, earlier: Vec::new(), source, imports, mappings, calls, skills: BTreeMap::new() }
    }

    /// The submitted program.
    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// Returns the source map of the earlier run of the session with the number `run`; `None` if it is not kept.
    pub(super) fn earlier(&self, run: u32) -> Option<&Self> {
        self.earlier.iter().find(|source_map| source_map.run == Some(run))
    }

    /// Returns the position of the called function's name for a position among the arguments of a call. Other positions
    /// stay unchanged, as do positions in a function among the arguments. With `thrown_alone`, only the arguments of a
    /// call that creates a thrown value count, as in `throw new Error(…)`.
    pub(super) fn call_position(&self, position: Position, thrown_alone: bool) -> Position {
        let byte = position.to_byte(&self.source).and_then(|byte| u32::try_from(byte).ok());
        let name = byte.and_then(|byte| self.calls.enclosing_call(byte, thrown_alone));
        name.map_or(position, |name| self.position_of_byte(name))
    }

    /// Adds the source map of an imported skill.
    pub(super) fn add_skill(&mut self, name: String, source_map: Self) {
        self.skills.insert(name, source_map);
    }

    /// Returns the source map of a skill that this or an earlier program of the session imported.
    pub(super) fn skill(&self, name: &str) -> Option<&Self> {
        let here = self.skills.get(name);
        here.or_else(|| self.earlier.iter().find_map(|source_map| source_map.skills.get(name)))
    }

    /// Makes this the source map of the session's run `run`. `before` is the source map of the previous run; it and the
    /// earlier ones in it are kept, up to [`EARLIER_MAX`].
    pub(super) fn following(mut self, run: u32, before: Option<Self>) -> Self {
        self.run = Some(run);
        if let Some(mut before) = before {
            self.earlier = std::mem::take(&mut before.earlier);
            self.earlier.insert(0, before);
            self.earlier.truncate(EARLIER_MAX);
        }
        self
    }

    /// Maps a position in the generated code of run `run` to the submitted code. Also returns the number of the run if
    /// it is not the current one. Returns `None` if the source map of the run is not kept, or has no entry for the
    /// line.
    pub(super) fn original_position_in(
        &self,
        run: Option<u32>,
        generated: Position,
    ) -> Option<(Option<u32>, Position)> {
        if run == self.run {
            return Some((None, self.original_position(generated)?));
        }
        let earlier = self.earlier.iter().find(|source_map| source_map.run == run)?;
        Some((run, earlier.original_position(generated)?))
    }

    /// Maps a position in the generated code of the current program to the submitted code; `None` if the source map has
    /// no entry for its line.
    pub(super) fn original_position(&self, generated: Position) -> Option<Position> {
        let line = generated.line.checked_sub(1 + LINES_BEFORE_IMPORTS)?;
        if let Some(import) = self.imports.get(line as usize) {
            return Some(*import);
        }
        let target = (line - to_u32(self.imports.len()), generated.column.saturating_sub(1));
        let after = self.mappings.partition_point(|mapping| mapping.generated <= target);
        // The nearest entry before the position on its line, or else the first entry of that line.
        let on_line = |mapping: &&Mapping| mapping.generated.0 == target.0;
        let before = after.checked_sub(1).and_then(|index| self.mappings.get(index)).filter(on_line);
        let (line, units) = before.or_else(|| self.mappings.get(after).filter(on_line))?.submitted;
        Some(Position { line: line + 1, column: self.characters(line, units) + 1 })
    }

    /// Position of a byte offset in the submitted code.
    pub(super) fn position_of_byte(&self, byte: u32) -> Position {
        Position::from_byte(&self.source, byte as usize)
    }

    /// Converts a column of a line from UTF-16 code units to characters. Line and column count from 0.
    fn characters(&self, line: u32, units: u32) -> u32 {
        let text = self.source.split('\n').nth(line as usize).unwrap_or_default();
        let mut left = units as usize;
        let fits = |character: &char| {
            let fits = left >= character.len_utf16();
            left = left.saturating_sub(character.len_utf16());
            fits
        };
        to_u32(text.chars().take_while(fits).count())
    }
}

/// Converts to u32; source text is far shorter than 4 GiB.
fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
