//! Tests of programs with the mistakes that models make: the whole answer that a model reads is compared, and for each
//! answer there is a judgement whether the next program of the model would be right.
//!
//! The programs are in `tests/mistakes/`. A file has cases of this form:
//!
//! ```text
//! === NAME [LANGUAGE]
//! the program
//! --- answer
//! the text blocks of the answer, one after the other
//! --- next: right
//! ```
//!
//! The last line is a person's judgement: `right`, or `wrong: REASON`. It says whether a model that knows the task, the
//! program and the answer writes a right program next, or rightly writes none. After a change of answers, run
//! `INSTA_UPDATE=always cargo nextest run -p lockhouse-tests mistakes::`: it writes the new answers, with `not judged` where an
//! answer has changed. Replace that by a judgement.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use lockhouse_tests::{ClientUser, Lockhouse, Session, Table, ensure, equal};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::json;

const POLICY: &str =
    "version = 1\n[servers.crm]\nallow = [\"*\"]\n[servers.billing]\nallow = [\"*\"]\nask = [\"refund\"]\n";

/// Minimum percentage of the cases in all files whose next program is right.
const RIGHT_PERCENT_MIN: usize = 95;

/// A program with its expected answer, and the judgement.
#[derive(Debug)]
struct Case {
    name: String,
    language: String,
    code: String,
    answer: String,
    next: String,
}

impl Case {
    fn parse(text: &str) -> Self {
        let part = |text: &str, mark: &str| {
            let (before, after) =
                text.split_once(mark).unwrap_or_else(|| panic!("{mark:?} is missing in {text}"));
            (before.to_owned(), after.to_owned())
        };
        let (head, rest) = part(text, "\n");
        let (name, language) = part(&head, " [");
        let (code, rest) = part(&rest, "\n--- answer\n");
        let (answer, next) = part(&rest, "\n--- next: ");
        Self {
            name,
            language: language.trim_end_matches(']').to_owned(),
            code,
            answer,
            next: next.trim_end().to_owned(),
        }
    }

    fn to_text(&self) -> String {
        let Self { name, language, code, answer, next } = self;
        format!("=== {name} [{language}]\n{code}\n--- answer\n{answer}\n--- next: {next}\n")
    }

    /// The program as it is sent. A byte order mark is written as `[BOM]`, since it is invisible.
    fn sent(&self) -> String {
        self.code.replace("[BOM]", "\u{feff}")
    }
}

fn path(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("mistakes").join(file)
}

fn cases(file: &str) -> Vec<Case> {
    let text = std::fs::read_to_string(path(file)).expect("the file");
    text.strip_prefix("=== ").expect("a case").split("\n=== ").map(Case::parse).collect()
}

/// Runs the programs of a file, and compares the answers. `flags` are those of the upstream servers.
async fn check(file: &str, flags: &[&str]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("servers/accounts.py");
    let server = |name: &str| {
        let arguments: Vec<&str> =
            [script.to_str().expect("a path"), name].into_iter().chain(flags.iter().copied()).collect();
        json!({"command": "python3", "args": arguments})
    };
    let lockhouse = Lockhouse::new()
        .policy(POLICY)
        .servers_entry("crm", server("crm"))
        .servers_entry("billing", server("billing"));
    let user = ClientUser::replying(lockhouse_tests::UserReply::Decline);
    let session =
        Session::connect_as(user, lockhouse.command(&["serve", "--answer", "text"]), Session::latest()).await;
    // The messages are those of CPython 3.11.
    let version = run(&session, "python", "import sys\nlist(sys.version_info[:2])").await;
    let is_reference = version == "[3,11]";
    let (mut all, mut table) = (cases(file), Table::new(file));
    for case in &mut all {
        let answer = run(&session, &case.language, &case.sent()).await;
        let is_compared = is_reference || case.language != "python";
        if is_compared && answer != case.answer && updates() {
            (case.answer, case.next) = (answer.clone(), "not judged".to_owned());
        }
        let found = if is_compared { answer } else { case.answer.clone() };
        table.row(&case.name, equal(found, case.answer.clone()));
    }
    session.close().await;
    if updates() {
        std::fs::write(path(file), all.iter().map(Case::to_text).collect::<String>())
            .expect("the file is written");
    }
    table.finish();
}

fn updates() -> bool {
    std::env::var("INSTA_UPDATE").is_ok_and(|value| value == "always")
}

async fn run(session: &Session, language: &str, code: &str) -> String {
    let arguments = json!({"language": language, "code": code});
    answer_text(&session.call_asking("run_code", arguments).await.expect("an answer"))
}

/// Returns what a model reads of an answer: its text blocks, without the line feed at the beginning of those after the
/// first, and the types of the others. Handles are replaced, since each run has its own.
fn answer_text(result: &CallToolResult) -> String {
    let mut text = String::new();
    for block in &result.content {
        let block = match block {
            ContentBlock::Text(text) => {
                text.text.strip_prefix('\n').unwrap_or(&text.text).trim_end().to_owned()
            }
            other => format!(
                "[{}]",
                serde_json::to_value(other).expect("JSON")["type"].as_str().unwrap_or_default()
            ),
        };
        let _ = writeln!(text, "{}", stable(&block));
    }
    text.trim_end().to_owned()
}

/// Replaces the parts of an answer that differ between runs: the handle of a stored file, 32 hexadecimal digits, and the
/// year.
fn stable(text: &str) -> String {
    match text.split_once("handle ") {
        Some((before, after)) if after.len() > 32 => format!("{before}handle [HANDLE]{}", &after[32..]),
        _ if text.len() == 6 && text.starts_with("\"20") => "[YEAR]".to_owned(),
        _ => text.to_owned(),
    }
}

#[tokio::test]
async fn typical_mistakes_are_answered_as_recorded() {
    check("typical.txt", &[]).await;
}

#[tokio::test]
async fn mistakes_of_other_kinds_are_answered_as_recorded() {
    check("other_kinds.txt", &["--more"]).await;
}

#[tokio::test]
async fn programs_that_fail_silently_are_answered_as_recorded() {
    check("silent.txt", &["--more"]).await;
}

#[test]
fn the_next_program_is_judged_to_be_right() {
    let all: Vec<Case> =
        ["typical.txt", "other_kinds.txt", "silent.txt"].into_iter().flat_map(cases).collect();
    let mut table = Table::new("judgements");
    for case in &all {
        let is_judged = case.next == "right" || case.next.starts_with("wrong: ");
        table.row(&case.name, ensure(is_judged, &case.next));
    }
    let right = all.iter().filter(|case| case.next == "right").count();
    table.row("the number of cases", equal(all.len(), 171));
    table.row("the right ones", ensure(right * 100 >= all.len() * RIGHT_PERCENT_MIN, (right, all.len())));
    table.finish();
}
