//! `lockhouse skills approve`: a person looks at what code wants to keep.

use std::process::ExitCode;

use lockhouse_gate::skills::{Skill, Skills};
use similar::TextDiff;

use super::named;
use crate::cli::consent::Consent;
use crate::cli::terminal::harmless;
use crate::cli::{UNAVAILABLE, USAGE, complain};

/// Unchanged lines around each change.
const CONTEXT: usize = 3;

/// Shows the draft, or what it changes, and asks. What was shown is what is kept, whatever becomes of the draft meanwhile.
pub(super) fn approve(skills: &Skills, name: &str, consent: Consent) -> Result<ExitCode, ExitCode> {
    let name = named(name)?;
    let draft = skills.draft(&name).map_err(|why| {
        match skills.load(&name) {
            Ok((skill, _)) => {
                eprintln!("lockhouse: {name} has no draft; its version {} is in force", skill.version);
            }
            Err(_) if why == lockhouse_gate::skills::Unreadable::Absent => {
                eprintln!("lockhouse: {}", skills.no_such(&name));
            }
            Err(_) => eprintln!("lockhouse: the draft of {name} cannot be approved: {why}"),
        }
        ExitCode::from(USAGE)
    })?;
    print!("{}", harmless(&shown(skills, &draft)));
    if !consent.given(&format!("Let code import {name}, version {}?", draft.version)) {
        return Ok(ExitCode::SUCCESS);
    }
    let saved = skills.approve(&draft).map_err(|error| complain(&error, UNAVAILABLE))?;
    println!("{name} is saved as version {}", saved.version);
    Ok(ExitCode::SUCCESS)
}

/// All of a new skill; of one that there is already, the changes.
fn shown(skills: &Skills, draft: &Skill) -> String {
    let before = skills.load(&draft.name).map(|(skill, _)| skill);
    let text = |skill: &Skill| {
        let tests = skill.tests.as_ref().map(|tests| format!("--- tests ---\n{tests}")).unwrap_or_default();
        format!(
            "name: {}\ndescription: {}\ntags: {}\nlanguage: {}\n--- code ---\n{}{tests}",
            skill.name,
            skill.description,
            skill.tags.join(", "),
            skill.language.as_str(),
            skill.code
        )
    };
    match before {
        Ok(before) => {
            let (old, new) = (text(&before), text(draft));
            let diff = TextDiff::from_lines(&old, &new);
            let mut unified = diff.unified_diff();
            let names = (format!("version {}", before.version), format!("version {} (draft)", draft.version));
            unified.context_radius(CONTEXT).header(&names.0, &names.1).to_string()
        }
        Err(_) => text(draft),
    }
}
