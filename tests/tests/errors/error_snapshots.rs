//! Runs failing programs and compares their answers with snapshots.
//!
//! The Python snapshots have the error messages and columns of CPython 3.11. With another Python version, the tests
//! compare only the status, the error type and the line of each program, and check that no message reveals internals of
//! Lockhouse.

use std::fmt::Write as _;
use std::path::Path;

use lockhouse_tests::{Lockhouse, Session, structured};
use serde_json::{Value, json};

const POLICY: &str = r#"version = 1
[servers.github]
allow = ["list_issues", "get_issue", "search_code", "get_readme", "create_issue", "close_issue", "wait", "export"]
ask = ["merge"]
deny = ["delete_repo"]
[servers.tracker]
allow = ["status"]
rate = "1/d"
[servers.mortal]
allow = ["*"]
[servers.broken]
allow = ["*"]
"#;

/// A configuration with small limits, so that programs exceed them quickly. The long grace period lets a stopped
/// program report its error even on a busy machine.
const CONFIG: &str = r#"
[limits]
memory_mib = 128
calls = 20
output_kib = 64
frame_kib = 1024
grace_ms = 2000
"#;

/// A server whose calls use credentials of each user, and its policy.
const ACCOUNTS: &str = r#"
[users]
key = "${cred:users}"
[servers.accounts]
url = "http://127.0.0.1:9/mcp"
auth = "per_user"
start = "lazy"
"#;
const ACCOUNTS_POLICY: &str = "[servers.accounts]\nallow = [\"*\"]\n";

/// Words that must not occur in an error message, because they would reveal paths of this machine or internals of
/// Lockhouse.
const INTERNAL_WORDS: [&str; 17] = [
    "/work",
    "/home",
    "/tmp",
    "/usr",
    "target/",
    "lockhouse_",
    "_lockhouse",
    "$lockhouse",
    "lockhouse:",
    "<lockhouse",
    "worker/",
    ".rs:",
    "site-packages",
    "lib/python",
    "asyncio/",
    "runner.py",
    "<frozen",
];

/// The failing programs of one language about one topic. Their answers are in one snapshot.
pub(crate) struct Group {
    pub(crate) language: &'static str,
    pub(crate) name: &'static str,
    pub(crate) programs: &'static str,
}

/// One failing program, with the additional arguments of its `run_code` call.
struct Program<'a> {
    name: &'a str,
    /// Additional arguments of the `run_code` call. The member `loose` is for the test: if true, the column and the
    /// traceback are not compared, because the program is stopped at an arbitrary point.
    options: Value,
    code: &'a str,
}

impl<'a> Program<'a> {
    /// Parses a file of programs. Each program begins with a line `=== NAME`, which may end with options in JSON.
    fn all(text: &'a str) -> Vec<Self> {
        text.strip_prefix("=== ").expect("a program").split("\n=== ").map(Self::parse).collect()
    }

    fn parse(text: &'a str) -> Self {
        let (head, code) = text.split_once('\n').expect("a program has lines");
        let (name, options) = match head.split_once(" {") {
            Some((name, options)) => (name, serde_json::from_str(&format!("{{{options}")).expect("options")),
            None => (head, json!({})),
        };
        Self { name, options, code: code.trim_end_matches('\n') }
    }
}

impl Group {
    /// Runs all programs of the group and compares their answers with the group's snapshot.
    pub(crate) async fn check(&self) {
        let lockhouse = lockhouse().config(&[CONFIG, ACCOUNTS].concat());
        let lockhouse = lockhouse.policy(&[POLICY, ACCOUNTS_POLICY].concat());
        lockhouse.file("credentials/users", "0123456789abcdef0123456789abcdef");
        let mut command = lockhouse.command(&["serve"]);
        command.env("CREDENTIALS_DIRECTORY", lockhouse.path("credentials"));
        let session = Session::connect(command, Session::latest()).await;
        // Waits for the servers first, so that a program's deadline does not include their start.
        let ready = session
            .run_code("python", "from mcp_tools.github import get_issue\nget_issue(number=1)['title']")
            .await;
        assert_eq!(ready["value"], "Crash at start", "{ready}");
        let mut reported = String::new();
        let mut ours = Vec::new();
        for program in Program::all(self.programs) {
            let answer = answer(&session, self.language, &program).await;
            let is_loose = program.options["loose"] == true;
            let printed = stable(&format_answer(&answer, is_loose), &lockhouse);
            ours.extend(
                INTERNAL_WORDS
                    .iter()
                    .filter(|word| printed.contains(**word))
                    .map(|word| (program.name, *word)),
            );
            let _ = write!(reported, "=== {}\n{}\n---\n{printed}\n", program.name, program.code);
        }
        let is_reference = self.language != "python" || is_reference(&session).await;
        session.close().await;
        assert!(ours.is_empty(), "messages that reveal Lockhouse's internals: {ours:?}");
        let name = format!("{}_{}", self.language, self.name);
        if !is_reference {
            let snapshot =
                Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/errors/snapshots/{name}.snap"));
            let expected = std::fs::read_to_string(snapshot).expect("the snapshot");
            assert_eq!(outcome_lines(&reported), outcome_lines(&expected), "{reported}");
            return;
        }
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(name, reported);
        });
    }
}

/// Returns whether the Python interpreter has the version 3.11, whose messages are in the snapshots.
async fn is_reference(session: &Session) -> bool {
    let version = session.run_code("python", "import sys\nlist(sys.version_info[:2])").await;
    version["value"] == json!([3, 11])
}

/// Returns the lines with the name and the outcome of each program, without the column of the error.
fn outcome_lines(reported: &str) -> Vec<&str> {
    let is_head = |line: &&str| line.starts_with("=== ") || line.starts_with("status: ");
    reported.lines().filter(is_head).map(|line| line.split(", column: ").next().unwrap_or(line)).collect()
}

/// Replaces the parts of `printed`, a formatted answer, that differ between runs: the test directory, and the time
/// until a rate limit permits the next call.
fn stable(printed: &str, lockhouse: &Lockhouse) -> String {
    let location = lockhouse.path("").display().to_string();
    let printed = printed.replace(location.trim_end_matches('/'), "[DIR]");
    let without_time = printed.split("there is room again in ").map(|part| match part.split_once(" s") {
        Some((seconds, rest)) if seconds.parse::<f64>().is_ok() => format!("[TIME] s{rest}"),
        _ => part.to_owned(),
    });
    without_time.collect::<Vec<_>>().join("there is room again in ")
}

/// Returns a Lockhouse test fixture with four upstream servers that imitate issue trackers. One of them,
/// `broken`, does not start.
pub(crate) fn lockhouse() -> Lockhouse {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("servers/tracker.py");
    let server = |flags: &[&str]| {
        let arguments: Vec<Value> =
            std::iter::once(json!(script)).chain(flags.iter().map(|flag| json!(flag))).collect();
        json!({"command": "python3", "args": arguments})
    };
    Lockhouse::new()
        .policy(POLICY)
        .config(CONFIG)
        .servers_entry("github", server(&[]))
        .servers_entry("tracker", server(&[]))
        .servers_entry("mortal", server(&[]))
        .servers_entry("broken", server(&["--broken"]))
}

async fn answer(session: &Session, language: &str, program: &Program<'_>) -> Value {
    let mut arguments = program.options.clone();
    arguments["language"] = language.into();
    arguments["code"] = program.code.into();
    arguments.as_object_mut().expect("an object").remove("loose");
    structured(session.call("run_code", arguments).await)
}

/// Formats the part of a program's answer that describes how the program ended. If `is_loose`, the error's column and
/// traceback are omitted.
fn format_answer(answer: &Value, is_loose: bool) -> String {
    let mut lines = Vec::new();
    let error = &answer["error"];
    let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut head = format!("status: {}", word(&answer["status"]));
    for (key, name) in [("type", "type"), ("code", "code"), ("line", "line"), ("column", "column")] {
        if !(error[key].is_null() || is_loose && key == "column") {
            let _ = write!(head, ", {name}: {}", word(&error[key]));
        }
    }
    lines.push(head);
    for key in ["message", "hint", "changed", "traceback"] {
        if let Some(text) = error[key].as_str().filter(|_| !(is_loose && key == "traceback")) {
            lines.push(in_lines(key, text));
        }
    }
    for key in ["value", "stdout", "stderr"] {
        let value = &answer[key];
        if !value.is_null() && answer["status"] != "limit" {
            lines.push(in_lines(key, &word(value)));
        }
    }
    lines.join("\n")
}

/// Formats `text` for a snapshot, after the label `name`. Control characters in the text are escaped.
fn in_lines(name: &str, text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|c| {
            if c.is_control() && c != '\n' && c != '\t' {
                c.escape_default().to_string()
            } else {
                c.to_string()
            }
        })
        .collect();
    let plain = plain.trim_end();
    match plain.contains('\n') {
        true => format!("{name}:\n  {}", plain.replace('\n', "\n  ")),
        false => format!("{name}: {plain}"),
    }
}
