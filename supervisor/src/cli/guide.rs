//! `lockhouse guide`: prints how an agent with a shell, and without a connection to an MCP server, uses Lockhouse. The packages
//! contain the same text as an Agent Skill.

use std::process::ExitCode;

const GUIDE: &str = include_str!("guide.md");

/// The name and the description of the Agent Skill, by which an agent decides whether to read it.
const FRONT_MATTER: &str = "\
---
name: lockhouse
description: >-
  Finds and calls the tools of MCP servers from a shell: searches tools, and runs Python or TypeScript programs in which each tool is
  a function. Use it when a task needs a service such as GitHub, Slack or a database that lockhouse has as a server.
---

";

/// Prints the guide.
pub(super) fn print() -> ExitCode {
    print!("{GUIDE}");
    ExitCode::SUCCESS
}

/// Returns the guide as the text of a `SKILL.md`.
pub(super) fn skill() -> String {
    format!("{FRONT_MATTER}{GUIDE}")
}
