//! The frames of a QuickJS stack that are in code which people wrote, at the positions of what they wrote.

use super::excerpts::excerpt;
use super::positions::{Place, Positions};
use super::typescript::{GENERATED, GENERATED_SKILL};

/// What people see as the file's name.
const SHOWN: &str = "code.ts";
/// The same of a skill, whose name follows.
const SHOWN_SKILL: &str = "skills/";

/// The file's name of an earlier program of the session, around the number of its run.
const EARLIER: &str = "code-";
const EXTENSION: &str = ".ts";

/// The longest name of a function in a traceback, in characters.
const NAME_CHARACTERS_MAX: usize = 80;

/// The longest traceback, in frames.
const FRAMES_MAX: usize = 20;

/// Frames alike that are shown one after the other.
const ALIKE_MAX: usize = 3;

/// The program's line in a stack of QuickJS: that of its innermost frame.
pub(super) fn line(stack: &str, positions: Option<&Positions>) -> Option<u32> {
    frames(stack, positions).find(|frame| frame.of == Code::Program).map(|frame| frame.place.line)
}

/// The place of the first frame that is in the program that runs.
pub(super) fn place_in_program(frames: &[StackFrame]) -> Option<Place> {
    frames.iter().find(|frame| frame.of == Code::Program).map(|frame| frame.place)
}

/// The frames of a stack that are the program's own, in its own positions.
pub(super) fn user_frames(stack: &str, positions: Option<&Positions>) -> Vec<String> {
    frames(stack, positions).map(|frame| frame.alone()).collect()
}

/// The code that a frame is in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Code<'s> {
    /// In the program that runs.
    Program,
    /// In an earlier one of its session.
    Earlier(u32),
    /// In a skill that is imported.
    Skill(&'s str),
}

impl Code<'_> {
    fn shown(self) -> String {
        match self {
            Self::Program => SHOWN.to_owned(),
            Self::Earlier(run) => format!("{EARLIER}{run}{EXTENSION}"),
            Self::Skill(name) => format!("{SHOWN_SKILL}{name}{EXTENSION}"),
        }
    }
}

/// A frame of the code that people wrote.
#[derive(PartialEq, Eq)]
pub(super) struct StackFrame<'s> {
    pub(super) name: &'s str,
    pub(super) of: Code<'s>,
    pub(super) place: Place,
}

impl StackFrame<'_> {
    fn alone(&self) -> String {
        let (file, Place { line, column }) = (self.of.shown(), self.place);
        match self.name {
            "" | "<anonymous>" => format!("    at {file}:{line}:{column}"),
            name => {
                let name: String = name.chars().take(NAME_CHARACTERS_MAX).collect();
                format!("    at {name} ({file}:{line}:{column})")
            }
        }
    }

    /// With the line of the text that it is in.
    fn with_line(&self, positions: Option<&Positions>) -> String {
        let of = match self.of {
            Code::Program => positions,
            Code::Earlier(run) => positions.and_then(|positions| positions.earlier(run)),
            Code::Skill(name) => positions.and_then(|positions| positions.skill(name)),
        };
        let frame = self.alone();
        let line = of.and_then(|positions| excerpt(positions.source(), self.place));
        line.map_or(frame.clone(), |line| format!("{frame}\n{line}"))
    }
}

/// The program's frames. Those that were translated before stay as they are.
pub(super) fn frames<'s>(
    stack: &'s str,
    positions: Option<&'s Positions>,
) -> impl Iterator<Item = StackFrame<'s>> {
    let frame = move |(depth, line): (usize, &'s str)| {
        let frame = line.trim().strip_prefix("at ")?.trim_end_matches(')');
        let (before, column) = frame.rsplit_once(':')?;
        let (before, line) = before.rsplit_once(':')?;
        let place = Place { line: line.parse().ok()?, column: column.parse().ok()? };
        let (name, file) = before.rsplit_once('(').unwrap_or(("", before));
        let name = name.trim_end();
        if let Some(skill) = file.strip_prefix(GENERATED_SKILL) {
            let positions = positions?.skill(skill)?;
            // All but the innermost are at a call.
            let place = positions.of_call(positions.submitted(place)?, depth == 0);
            return Some(StackFrame { name, of: Code::Skill(skill), place });
        }
        if let Some(run) = file.strip_prefix(GENERATED) {
            let run = run.strip_prefix('-').and_then(|run| run.parse().ok());
            let positions = positions?;
            let (earlier, place) = positions.submitted_in(run, place)?;
            let of = earlier.map_or(Some(positions), |run| positions.earlier(run))?;
            let place = of.of_call(place, depth == 0);
            return Some(StackFrame { name, of: earlier.map_or(Code::Program, Code::Earlier), place });
        }
        let stem = file.strip_suffix(EXTENSION)?;
        let of = match (stem.strip_prefix(EARLIER), stem.strip_prefix(SHOWN_SKILL)) {
            _ if file == SHOWN => Code::Program,
            (Some(run), _) => Code::Earlier(run.parse().ok()?),
            (_, Some(skill)) => Code::Skill(skill),
            _ => return None,
        };
        Some(StackFrame { name, of, place })
    };
    stack.lines().enumerate().filter_map(frame).take(FRAMES_MAX)
}

/// Frames with the lines of code that they are in, innermost first.
pub(super) fn with_lines(frames: &[StackFrame], positions: Option<&Positions>) -> String {
    let mut told: Vec<String> = Vec::new();
    for alike in frames.chunk_by(|one, other| one == other) {
        told.extend(alike.iter().take(ALIKE_MAX).map(|frame| frame.with_line(positions)));
        if alike.len() > ALIKE_MAX {
            told.push(format!("    … {} more like it", alike.len() - ALIKE_MAX));
        }
    }
    told.join("\n")
}

/// A place in the program, as a frame with its line of code.
pub(super) fn place_with_line(place: Place, source: &str) -> String {
    let frame = StackFrame { name: "", of: Code::Program, place }.alone();
    excerpt(source, place).map_or(frame.clone(), |excerpt| format!("{frame}\n{excerpt}"))
}
