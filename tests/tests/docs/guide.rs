//! Tests of `lockhouse guide`: each command and program in it runs, and the packaged Agent Skill has the same text.

use std::process::Command;

use lockhouse_tests::{Lockhouse, Table, ensure};

use super::code_blocks::blocks;

/// The exit statuses of the commands in the guide, in their order.
const COMMANDS: usize = 11;

#[test]
fn each_command_and_program_of_the_guide_runs() {
    let lockhouse = Lockhouse::with_canned(&["github"], "any");
    let policy = std::fs::read_to_string(lockhouse.path("config/lockhouse/policy.toml")).unwrap();
    let lockhouse = lockhouse.policy(&format!("{policy}[servers.skills]\nallow = [\"save\"]\n"));
    let guide = lockhouse.run(&["guide"]);
    assert_eq!(guide.status, Some(0), "{guide:?}");
    assert!(guide.stdout.lines().count() <= 120);
    let mut table = Table::new("the guide");
    let (mut commands, mut programs) = (Vec::new(), Vec::new());
    for block in blocks(&guide.stdout) {
        match &*block.language {
            "sh" => commands.extend(block.text.lines().map(str::to_owned).filter(|line| !line.is_empty())),
            "python" => programs.push(("python", block.text)),
            "ts" => programs.push(("typescript", block.text)),
            other => panic!("{other}"),
        }
    }
    lockhouse.file("report.py", &programs[0].1);
    lockhouse.file("report.ts", &programs[1].1);
    for (language, program) in &programs {
        let answer = lockhouse.answer(language, program);
        table.row(program, ensure(answer["status"] == "ok", &answer));
    }
    for line in &commands {
        let program = lockhouse.program().parent().unwrap().display();
        let mut shell = Command::new("sh");
        let own = lockhouse.command(&[]);
        shell.env_clear().envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let path = std::env::var("PATH").unwrap_or_default();
        let done =
            shell.args(["-c", line]).env("PATH", format!("{program}:{path}")).current_dir(lockhouse.path(""));
        let done = done.output().unwrap();
        table.row(line, ensure(done.status.success() && !done.stdout.is_empty(), &done));
    }
    table.row("all commands were found", ensure(commands.len() == COMMANDS, &commands));
    table.finish();
}

#[test]
fn the_agent_skill_has_the_text_of_the_guide() {
    let lockhouse = Lockhouse::new();
    let folder = tempfile::tempdir().unwrap();
    let made = lockhouse.run(&["generate", "skill", folder.path().to_str().unwrap()]);
    assert_eq!(made.status, Some(0), "{made:?}");
    let skill = std::fs::read_to_string(folder.path().join("SKILL.md")).unwrap();
    let (head, text) = skill.strip_prefix("---\n").unwrap().split_once("---\n\n").unwrap();
    assert_eq!(text, lockhouse.run(&["guide"]).stdout);
    assert!(head.starts_with("name: lockhouse\ndescription: >-\n  Finds and calls"), "{head}");
    assert!(head.len() < 1024 + 40, "a description has at most 1,024 characters");
}
