//! Selects the frames of user code from QuickJS stacks, and translates their positions to the submitted code.

use super::source_excerpt::excerpt;
use super::source_map::{Position, SourceMap};
use super::typescript::{GENERATED, GENERATED_SKILL};

/// File name of the program in tracebacks.
const PROGRAM_FILE: &str = "code.ts";
/// Prefix of the file name of a skill in tracebacks.
const SKILL_FOLDER: &str = "skills/";

/// Prefix of the file name of an earlier program of the session, followed by the number of its run.
const SESSION_RUN_PREFIX: &str = "code-";
const EXTENSION: &str = ".ts";

/// Maximum length of a function name in a traceback, in characters.
const NAME_CHARACTERS_MAX: usize = 80;

/// Maximum number of frames in a traceback.
const FRAMES_MAX: usize = 20;

/// Returns the line of a stack's innermost frame in the current program; `None` if no frame is in the current program.
pub(super) fn line(stack: &str, source_map: Option<&SourceMap>) -> Option<u32> {
    frames(stack, source_map)
        .find(|frame| frame.origin == CodeOrigin::Program)
        .map(|frame| frame.position.line)
}

/// Returns the position of a stack's innermost frame in the current program; `None` if no frame is in the current
/// program.
pub(super) fn position_in_program(frames: &[StackFrame]) -> Option<Position> {
    frames.iter().find(|frame| frame.origin == CodeOrigin::Program).map(|frame| frame.position)
}

/// Formats the frames of user code in a stack, one text for each.
pub(super) fn user_frames(stack: &str, source_map: Option<&SourceMap>) -> Vec<String> {
    frames(stack, source_map).map(|frame| frame.to_text()).collect()
}

/// The code that a frame belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CodeOrigin<'s> {
    /// The current program.
    Program,
    /// An earlier program of the session, by the number of its run.
    Earlier(u32),
    /// An imported skill, by its name.
    Skill(&'s str),
}

impl CodeOrigin<'_> {
    fn file_name(self) -> String {
        match self {
            Self::Program => PROGRAM_FILE.to_owned(),
            Self::Earlier(run) => format!("{SESSION_RUN_PREFIX}{run}{EXTENSION}"),
            Self::Skill(name) => format!("{SKILL_FOLDER}{name}{EXTENSION}"),
        }
    }
}

/// A stack frame of user code.
#[derive(PartialEq, Eq)]
pub(super) struct StackFrame<'s> {
    pub(super) name: &'s str,
    pub(super) origin: CodeOrigin<'s>,
    pub(super) position: Position,
}

impl StackFrame<'_> {
    fn to_text(&self) -> String {
        let (file, Position { line, column }) = (self.origin.file_name(), self.position);
        match self.name {
            "" | "<anonymous>" => format!("    at {file}:{line}:{column}"),
            name => {
                let name: String = name.chars().take(NAME_CHARACTERS_MAX).collect();
                format!("    at {name} ({file}:{line}:{column})")
            }
        }
    }

    /// Formats the frame with its source line.
    fn to_text_with_excerpt(&self, source_map: Option<&SourceMap>) -> String {
        let source_map = match self.origin {
            CodeOrigin::Program => source_map,
            CodeOrigin::Earlier(run) => source_map.and_then(|source_map| source_map.earlier(run)),
            CodeOrigin::Skill(name) => source_map.and_then(|source_map| source_map.skill(name)),
        };
        let frame = self.to_text();
        let line = source_map.and_then(|source_map| excerpt(source_map.source(), self.position));
        line.map_or(frame.clone(), |line| format!("{frame}\n{line}"))
    }
}

/// Parses a stack into its frames of user code, at most [`FRAMES_MAX`], with positions in the submitted code. Frames
/// that already have such positions stay unchanged.
pub(super) fn frames<'s>(
    stack: &'s str,
    source_map: Option<&'s SourceMap>,
) -> impl Iterator<Item = StackFrame<'s>> {
    let frame = move |(depth, line): (usize, &'s str)| {
        let frame = line.trim().strip_prefix("at ")?.trim_end_matches(')');
        let (before, column) = frame.rsplit_once(':')?;
        let (before, line) = before.rsplit_once(':')?;
        let position = Position { line: line.parse().ok()?, column: column.parse().ok()? };
        let (name, file) = before.rsplit_once('(').unwrap_or(("", before));
        let name = name.trim_end();
        if let Some(skill) = file.strip_prefix(GENERATED_SKILL) {
            let source_map = source_map?.skill(skill)?;
            // All frames except the innermost one are at a call.
            let position = source_map.call_position(source_map.original_position(position)?, depth == 0);
            return Some(StackFrame { name, origin: CodeOrigin::Skill(skill), position });
        }
        if let Some(run) = file.strip_prefix(GENERATED) {
            let run = run.strip_prefix('-').and_then(|run| run.parse().ok());
            let source_map = source_map?;
            let (earlier, position) = source_map.original_position_in(run, position)?;
            let program = earlier.map_or(Some(source_map), |run| source_map.earlier(run))?;
            let position = program.call_position(position, depth == 0);
            return Some(StackFrame {
                name,
                origin: earlier.map_or(CodeOrigin::Program, CodeOrigin::Earlier),
                position,
            });
        }
        let stem = file.strip_suffix(EXTENSION)?;
        let origin = match (stem.strip_prefix(SESSION_RUN_PREFIX), stem.strip_prefix(SKILL_FOLDER)) {
            _ if file == PROGRAM_FILE => CodeOrigin::Program,
            (Some(run), _) => CodeOrigin::Earlier(run.parse().ok()?),
            (_, Some(skill)) => CodeOrigin::Skill(skill),
            _ => return None,
        };
        Some(StackFrame { name, origin, position })
    };
    stack.lines().enumerate().filter_map(frame).take(FRAMES_MAX)
}

/// Formats the innermost frame that is in the current program, with its source line. If the error is in a
/// skill or in a function of an earlier run, the frame of the error comes first.
pub(super) fn render(frames: &[StackFrame], source_map: Option<&SourceMap>) -> String {
    let is_own = |frame: &&StackFrame| frame.origin == CodeOrigin::Program;
    let innermost = frames.first().filter(|frame| !is_own(frame));
    let shown = innermost.into_iter().chain(frames.iter().find(is_own));
    shown.map(|frame| frame.to_text_with_excerpt(source_map)).collect::<Vec<_>>().join("\n")
}

/// Formats a position in the current program as a frame with its source line.
pub(super) fn position_with_excerpt(position: Position, source: &str) -> String {
    let frame = StackFrame { name: "", origin: CodeOrigin::Program, position }.to_text();
    excerpt(source, position).map_or(frame.clone(), |excerpt| format!("{frame}\n{excerpt}"))
}
