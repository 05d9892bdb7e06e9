//! `lockhouse skills approve`: shows a draft of a skill that code saved, and approves it after confirmation.

use std::process::ExitCode;

use lockhouse_config::Files;
use lockhouse_stores::skills::{Skill, Skills};
use similar::TextDiff;

use super::parse_name;
use super::recorded_change::SkillChange;
use crate::cli::USAGE;
use crate::cli::confirmation::Confirmation;
use crate::cli::terminal::sanitize_lines;

/// The number of unchanged lines that are shown before and after each change, when a draft is compared with
/// the saved version of the skill.
const CONTEXT: usize = 3;

/// Shows the draft of a skill, or its differences from the saved version, and asks for approval. Saves exactly the
/// draft that was shown, even if code replaces the draft meanwhile.
pub(super) fn approve(
    files: &Files,
    skills: &Skills,
    name: &str,
    confirmation: Confirmation,
) -> Result<ExitCode, ExitCode> {
    let name = parse_name(name)?;
    let draft = skills.draft(&name).map_err(|why| {
        match skills.load(&name) {
            Ok((skill, _)) => {
                eprintln!("lockhouse: {name} has no draft; its current version is {}", skill.version);
            }
            Err(_) if why == lockhouse_stores::skills::LoadError::Absent => {
                eprintln!("lockhouse: {}", skills.not_found_message(&name));
            }
            Err(_) => eprintln!("lockhouse: the draft of {name} cannot be approved: {why}"),
        }
        ExitCode::from(USAGE)
    })?;
    print!("{}", sanitize_lines(&describe_draft(skills, &draft)));
    if !confirmation.confirm(&format!("Allow code to import {name}, version {}?", draft.version)) {
        return Ok(confirmation.unconfirmed());
    }
    let change = SkillChange { skills, name: &name, action: "approve", after: Some(&draft) };
    let saved = change.make(files, || skills.approve(&draft))?;
    println!("saved {name} as version {}", saved.version);
    Ok(ExitCode::SUCCESS)
}

/// Renders a draft of a skill: as its differences from the saved version, or in full if there is no saved version.
fn describe_draft(skills: &Skills, draft: &Skill) -> String {
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
