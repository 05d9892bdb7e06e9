//! Skills: functions that code keeps for later programs, in both languages.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::too_many_lines)] // A test that cannot go on should end loudly.

mod approved;
mod command;
mod hostile;
mod reuse;
mod saving;
mod shared;

use lockhouse_tests::Lockhouse;
use serde_json::Value;

/// Who writes this lets code save skills, and call the fixture server.
const ALLOWED: &str =
    "version = 1\n[servers.skills]\nallow = [\"save\"]\n[servers.fixture]\nallow = [\"*\"]\n";

fn lockhouse() -> Lockhouse {
    Lockhouse::new().server("fixture", &[]).policy(ALLOWED)
}

/// A program in each language that saves a skill of this name, with this code.
fn saving(language: &str, name: &str, code: &str) -> String {
    let code = Value::from(code);
    match language {
        "python" => format!("import skills\nskills.save('{name}', 'A skill.', ['tag'], code={code})"),
        _ => format!(
            "await skills.save({{name: '{name}', description: 'A skill.', tags: ['tag'], code: {code}}})"
        ),
    }
}

/// Code of a skill in each language whose one function gives what the expression gives.
fn giving(language: &str, name: &str, expression: &str) -> String {
    match language {
        "python" => format!("def {name}():\n    return {expression}\n"),
        _ => format!("export function {name}() {{\n  return {expression};\n}}\n"),
    }
}

/// A program in each language that imports the function of a skill, and gives what it gives.
fn using(language: &str, name: &str) -> String {
    match language {
        "python" => format!("from skills.{name} import {name}\n{name}()"),
        _ => format!("import {{ {name} }} from \"skills/{name}\";\nawait {name}()"),
    }
}

/// A folder of a skill as a person writes it.
fn folder(lockhouse: &Lockhouse, below: &str, name: &str, code: &str) {
    lockhouse.file(
        &format!("{below}/{name}/SKILL.md"),
        format!("---\nname: {name}\ndescription: Shared.\n---\n# {name}\n"),
    );
    lockhouse.file(&format!("{below}/{name}/skill.py"), code);
}

const OWN: &str = "state/lockhouse/skills";
