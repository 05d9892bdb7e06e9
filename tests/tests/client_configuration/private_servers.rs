//! Tests of servers that Claude Code uses in one project only: `lockhouse setup` does not make them available in all
//! projects, unless the user decides so.

use lockhouse_tests::{CommandOutput, Lockhouse, Table, ensure, equal};

use crate::client_configuration::at_a_terminal;

const CLAUDE: &str = "home/.claude.json";
const CONFIG: &str = "config/lockhouse/config.toml";

/// Creates a home directory that is also a project, with two servers for this project only. One of them has the name of
/// a server for all projects.
fn home() -> (Lockhouse, String) {
    let lockhouse = Lockhouse::new();
    let project = lockhouse.path("home").canonicalize().unwrap().display().to_string();
    let text = format!(
        r#"{{
  "mcpServers": {{
    "docs": {{ "type": "stdio", "command": "docs-of-all" }}
  }},
  "projects": {{
    "{project}": {{
      "mcpServers": {{
        "docs": {{ "type": "stdio", "command": "docs-of-project" }},
        "db": {{ "type": "stdio", "command": "db-of-project" }}
      }}
    }}
  }}
}}
"#
    );
    lockhouse.file(CLAUDE, &text);
    (lockhouse, project)
}

fn text(lockhouse: &Lockhouse, name: &str) -> String {
    std::fs::read_to_string(lockhouse.path(name)).unwrap_or_default()
}

/// Returns which of the three servers Lockhouse's configuration has, and which the file of Claude Code.
fn places(lockhouse: &Lockhouse) -> [Vec<&'static str>; 2] {
    [CONFIG, CLAUDE].map(|file| {
        let text = text(lockhouse, file);
        let servers = ["docs-of-all", "docs-of-project", "db-of-project"];
        servers.into_iter().filter(|server| text.contains(server)).collect()
    })
}

fn says(finished: &CommandOutput, project: &str) -> Result<(), String> {
    let words = format!(
        "private to the project {project} in Claude Code: db. In Lockhouse, all AI clients could use them in all projects."
    );
    ensure(finished.status == Some(0) && finished.stdout.contains(&words), finished)
}

#[test]
fn setup_takes_private_servers_over_only_if_the_user_decides_so() {
    let mut table = Table::new("servers that are private to a project");
    // The questions: which servers, private ones, moving them, which clients, the mode, writing.
    let answers = ["", "y", "", "", "", "y"];
    let declined = ["", "", "", "", "", "y"];
    let all = ["docs-of-all", "db-of-project"];
    for (case, lines, in_lockhouse, left) in [
        ("without questions", None, vec!["docs-of-all"], vec!["docs-of-project", "db-of-project"]),
        ("Enter", Some(declined), vec!["docs-of-all"], vec!["docs-of-project", "db-of-project"]),
        ("yes", Some(answers), all.to_vec(), vec!["docs-of-project"]),
    ] {
        let (lockhouse, project) = home();
        let before = text(&lockhouse, CLAUDE);
        let finished = match lines {
            None => lockhouse.run(&["setup", "--yes", "--no-connect"]),
            Some(lines) => at_a_terminal(&lockhouse, &lines, &["setup", "--no-connect"]),
        };
        table.row(format!("{case}: it says so"), says(&finished, &project));
        table.row(format!("{case}: where the servers are"), equal(places(&lockhouse), [in_lockhouse, left]));
        let undone = lockhouse.run(&["setup", "--undo", "--yes"]);
        table.row(format!("{case}: undo"), ensure(undone.status == Some(0), &undone));
        table.row(format!("{case}: the file after undo"), equal(text(&lockhouse, CLAUDE), before));
    }
    table.finish();
}

#[test]
fn import_says_what_was_private() {
    let (lockhouse, project) = home();
    let finished = lockhouse.run(&["import", "--dry-run"]);
    let words =
        format!("imported; private to the project {project} so far, and for all projects in Lockhouse");
    assert_eq!(finished.stdout.matches(&words).count(), 2, "{finished:?}");
}
