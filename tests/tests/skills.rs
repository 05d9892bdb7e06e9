//! Tests of skills: Python and TypeScript functions that a program saves and that later programs can import.

mod command;
mod hostile;
mod reuse;
mod running;
mod save_permission;
mod saving;
mod shared;

use lockhouse_tests::Lockhouse;
use serde_json::Value;

/// A policy that allows saving skills and calling all tools of the fixture server.
const SKILLS_POLICY: &str =
    "version = 1\n[servers.skills]\nallow = [\"save\"]\n[servers.fixture]\nallow = [\"*\"]\n";

fn lockhouse() -> Lockhouse {
    Lockhouse::new().server("fixture", &[]).policy(SKILLS_POLICY)
}

/// Returns a program that saves `code` as a skill with this name.
fn saving(language: &str, name: &str, code: &str) -> String {
    let code = Value::from(code);
    match language {
        "python" => format!("import skills\nskills.save('{name}', 'A skill.', ['tag'], code={code})"),
        _ => format!(
            "await skills.save({{name: '{name}', description: 'A skill.', tags: ['tag'], code: {code}}})"
        ),
    }
}

/// Returns the code of a skill with one function. The function is named like the skill and returns the value of
/// `expression`.
fn giving(language: &str, name: &str, expression: &str) -> String {
    match language {
        "python" => format!("def {name}():\n    return {expression}\n"),
        _ => format!("export function {name}() {{\n  return {expression};\n}}\n"),
    }
}

/// Returns a program that imports the function of the skill `name`, calls it, and returns its result.
fn using(language: &str, name: &str) -> String {
    match language {
        "python" => format!("from skills.{name} import {name}\n{name}()"),
        _ => format!("import {{ {name} }} from \"skills/{name}\";\nawait {name}()"),
    }
}

/// Creates the folder of a Python skill below the directory `below`, with the files that a user would write by hand.
fn folder(lockhouse: &Lockhouse, below: &str, name: &str, code: &str) {
    lockhouse.file(
        &format!("{below}/{name}/SKILL.md"),
        format!("---\nname: {name}\ndescription: Shared.\n---\n# {name}\n"),
    );
    lockhouse.file(&format!("{below}/{name}/skill.py"), code);
}

const OWN_STORE: &str = "state/lockhouse/skills";
