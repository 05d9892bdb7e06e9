//! Tests of writes that need approval: an approver decides about the whole content, which is what is written.

use std::path::Path;

use aws_lc_rs::digest::{SHA256, digest};
use lockhouse_tests::{Approver, Lockhouse, Session, Table, ensure, equal};
use serde_json::{Value, json};

const POLICY: &str =
    "version = 1\n[servers.files]\nallow = [\"read\", \"stat\", \"list\"]\nask = [\"write\"]\n";

fn lockhouse() -> Lockhouse {
    let lockhouse = Lockhouse::outside_tmp()
        .config("[servers.files]\nread = [\"~/out\"]\nwrite = [\"~/out\"]\nfile_mib = 4\n")
        .policy(POLICY);
    lockhouse.file("home/out/old.txt", "first\nsecond\n");
    lockhouse
}

fn sha256(content: &[u8]) -> String {
    digest(&SHA256, content).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Runs a program, and answers its question with `decision` after `meanwhile`. Returns the question and the answer of
/// the run.
async fn decided(
    session: &Session,
    approver: &mut Approver,
    (language, code): (&str, &str),
    decision: &str,
    meanwhile: impl FnOnce(),
) -> (Value, Value) {
    let answering = async {
        let question = approver.next("ask").await;
        meanwhile();
        approver.answer(&question, decision, "once").await;
        question["ask"].clone()
    };
    let (answer, question) = tokio::join!(session.run_code(language, code), answering);
    (question, answer)
}

/// Returns a program that runs `statements`, and whose value is `written`, or the name and the text of an error.
fn python(statements: &str) -> String {
    let indented: String = statements.lines().map(|line| format!(" {line}\n")).collect();
    format!("try:\n{indented} r = 'written'\nexcept Exception as e: r = f'{{type(e).__name__}}: {{e}}'\nr")
}

/// Returns the question as text without the marks of continued lines.
fn text_of(question: &Value) -> String {
    question["text"].as_str().unwrap_or_default().replace("\n    : ", "")
}

struct Write {
    name: &'static str,
    language: &'static str,
    file: &'static str,
    code: String,
    content: Vec<u8>,
    shown: &'static [&'static str],
    is_complete: bool,
}

fn writes(folder: &Path) -> Vec<Write> {
    let path = |name: &str| folder.join(name).display().to_string();
    let piece = |number: usize| format!("{number:02}{}", "x".repeat(51_198));
    let old = path("old.txt");
    let write = |name, file, code: String, content: &[u8], shown| Write {
        name,
        language: "python",
        file,
        code: python(&code),
        content: content.to_vec(),
        shown,
        is_complete: true,
    };
    let forty = format!(
        "with open({:?}, 'w') as f:\n for i in range(40): f.write(f'{{i:02}}' + 'x' * 51_198)",
        path("new.txt")
    );
    let all: String = (0..40).map(piece).collect();
    let binary = format!("open({:?}, 'wb').write(b'\\x89PNG\\n')", path("a.png"));
    let patched = format!("with open({old:?}, 'r+') as f:\n f.seek(6)\n f.write('SECOND')");
    let base64 = format!("from files import write\nwrite({:?}, base64='cm0gLXJmIC8=')", path("b.sh"));
    let comment = format!("open({old:?}, 'w').write(secret)  # writes 'hello' only");
    let comment = format!("secret = 'rm -rf ' + '/'\n{comment}");
    vec![
        Write {
            is_complete: false,
            ..write(
                "2 MB in 40 writes",
                "new.txt",
                forty,
                all.as_bytes(),
                &[
                    "\"begins\": \"00xxx",
                    "\"ends\": \"xxx",
                    "\"bytes\": 2048000,",
                    "WARNING: 2045000 bytes of the file between its beginning and its end are not shown.",
                ],
            )
        },
        write(
            "append",
            "old.txt",
            format!("open({old:?}, 'a').write('third\\n')"),
            b"first\nsecond\nthird\n",
            &["\"content\": \"first\\nsecond\\nthird\\n\"", "\"replaces\": \"a file of 13 bytes, changed 20"],
        ),
        write(
            "r+",
            "old.txt",
            patched,
            b"first\nSECOND\nthird\n",
            &["\"content\": \"first\\nSECOND\\nthird\\n\""],
        ),
        write(
            "write_text",
            "old.txt",
            format!("from pathlib import Path\nPath({old:?}).write_text('ž')"),
            "ž".as_bytes(),
            &["\"content\": \"ž\"", "\"bytes\": 2,"],
        ),
        write("bytes", "a.png", binary, b"\x89PNG\n", &[r#""content_bytes": "\\x89PNG\\n""#]),
        Write {
            language: "typescript",
            code: format!(
                "import {{ writeFile }} from 'node:fs/promises';\nawait writeFile({old:?}, 'ts'); 'written'"
            ),
            ..write("TypeScript", "old.txt", String::new(), b"ts", &["\"content\": \"ts\""])
        },
        write("the tool", "b.sh", base64, b"rm -rf /", &["\"text\": \"rm -rf /\""]),
        write(
            "a comment that pretends",
            "old.txt",
            comment,
            b"rm -rf /",
            &["\"content\": \"rm -rf /\"", "whose comments may be wrong, reads:\n    | open("],
        ),
    ]
}

#[tokio::test]
async fn the_question_describes_exactly_the_content_that_is_written() {
    let lockhouse = lockhouse();
    let folder = lockhouse.path("home/out");
    let session = lockhouse.serve().await;
    let mut approver = Approver::connected(&lockhouse).await;
    let mut table = Table::new("writes that need approval");
    for Write { name, language, file, code, content, shown, is_complete } in writes(&folder) {
        for decision in ["decline", "approve"] {
            let (path, before) = (folder.join(file), std::fs::read(folder.join(file)).ok());
            let entries = || std::fs::read_dir(&folder).unwrap().count();
            let (count, mut while_asked) = (entries(), (None, 0));
            let meanwhile = || while_asked = (std::fs::read(&path).ok(), entries());
            let (question, answer) =
                decided(&session, &mut approver, (language, &code), decision, meanwhile).await;
            let (row, text) = (format!("{name}, {decision}"), text_of(&question));
            table.row(format!("{row}: nothing is there before"), equal(while_asked, (before.clone(), count)));
            let hash = sha256(&content);
            let is_hashed = name == "the tool" || text.contains(&hash);
            table.row(format!("{row}: the hash"), ensure(is_hashed, &text));
            for words in shown {
                table.row(format!("{row}: {words}"), ensure(text.contains(words), &text));
            }
            table.row(format!("{row}: complete"), equal(!text.contains("INCOMPLETE"), is_complete));
            let written = std::fs::read(&path).ok();
            if decision == "approve" {
                table.row(format!("{row}: the content"), ensure(written == Some(content.clone()), &answer));
                table.row(format!("{row}: the value"), equal(&answer["value"], &json!("written")));
            } else {
                table.row(format!("{row}: unchanged"), ensure(written == before, &answer));
                table.row(format!("{row}: an error"), ensure(answer["value"] != "written", &answer));
            }
        }
    }
    table.finish();
}

#[tokio::test]
async fn a_file_that_changes_while_the_question_waits_is_not_overwritten() {
    let lockhouse = lockhouse();
    let session = lockhouse.serve().await;
    let mut approver = Approver::connected(&lockhouse).await;
    let (path, other) = (lockhouse.path("home/out/a.txt"), lockhouse.path("home/out/other.txt"));
    std::fs::write(&other, "other").unwrap();
    let opened = python(&format!("open({path:?}, 'w').write('new')"));
    let called =
        python(&format!("from files import write\nwrite({:?}, text='new')", path.display().to_string()));
    let remove = || std::fs::remove_file(&path).unwrap();
    let write = |text: &str| std::fs::write(&path, text).unwrap();
    type Change<'a> = (&'a str, Box<dyn Fn() + 'a>, bool);
    let changes: [Change<'_>; 6] = [
        ("unchanged", Box::new(|| {}), true),
        ("another text", Box::new(|| write("another")), false),
        ("a text of the same length", Box::new(|| write("OLD")), false),
        ("removed", Box::new(remove), false),
        (
            "a link to another file",
            Box::new(|| {
                remove();
                std::os::unix::fs::symlink(&other, &path).unwrap();
            }),
            false,
        ),
        ("read-only", Box::new(|| set_mode(&path, 0o444)), false),
    ];
    let mut table = Table::new("changes while the question waits");
    for (name, change, is_written) in &changes {
        for (way, code) in [("open", &opened), ("the tool", &called)] {
            let _ = std::fs::remove_file(&path);
            write("old");
            let (_, answer) = decided(&session, &mut approver, ("python", code), "approve", change).await;
            let (row, got) = (format!("{name}, {way}"), std::fs::read(&path).ok());
            table.row(
                &row,
                equal(answer["value"] == "written", *is_written).map_err(|e| format!("{e} {answer}")),
            );
            table.row(format!("{row}: the content"), equal(got.as_deref() == Some(b"new"), *is_written));
        }
    }
    let _ = std::fs::remove_file(&path);
    let (_, answer) =
        decided(&session, &mut approver, ("python", &opened), "approve", || write("made")).await;
    let error = answer["error"]["message"].as_str().unwrap_or_default();
    table.row(
        "created",
        ensure(error.contains("was created, changed or removed after the write was decided"), &answer),
    );
    table.row("created: kept", equal(std::fs::read(&path).ok(), Some(b"made".to_vec())));
    table.row("the other file", equal(std::fs::read(&other).ok(), Some(b"other".to_vec())));
    table.finish();
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// The description of a content is the supervisor's: a program cannot give one itself.
#[test]
fn a_program_cannot_describe_the_content_itself() {
    let lockhouse = lockhouse();
    let path = lockhouse.path("home/out/a.txt").display().to_string();
    let call = |arguments: &str| {
        format!(
            "from mcp_tools import call_tool, ToolError\ntry: r = call_tool('files.write', {{'path': {path:?}, {arguments}}})\n\
             except ToolError as e: r = e.code\nr"
        )
    };
    let mut table = Table::new("arguments");
    for arguments in [
        "'bytes': 5, 'sha256': 'x'",
        "'text': 'a', 'sha256': 'x'",
        "'text': 'a', 'replaces': 'x'",
        "'text': 'a', 'content': 'b'",
    ] {
        let answer = lockhouse.answer("python", &call(arguments));
        table.row(arguments, equal(&answer["value"], &json!("invalid_arguments")));
    }
    let control = lockhouse.answer("python", &call("'text': 'a'"));
    table.row("control", equal(&control["value"], &json!("approval_declined")));
    table.finish();
}

#[tokio::test]
async fn the_log_covers_the_content_and_has_the_outcome_of_the_write() {
    let lockhouse = lockhouse();
    let session = lockhouse.serve().await;
    let mut approver = Approver::connected(&lockhouse).await;
    let path = lockhouse.path("home/out/a.txt");
    let mut digests = Vec::new();
    for (text, decision) in [("one", "approve"), ("two", "approve"), ("three", "decline")] {
        let _ = std::fs::remove_file(&path);
        let code = python(&format!("open({path:?}, 'w').write({text:?})"));
        let (question, _) = decided(&session, &mut approver, ("python", &code), decision, || {}).await;
        digests.push(question["digest"].clone());
    }
    let _ = std::fs::remove_file(&path);
    let code = python(&format!("open({path:?}, 'w').write('four')"));
    let create = || std::fs::write(&path, "made").unwrap();
    decided(&session, &mut approver, ("python", &code), "approve", create).await;
    let records = lockhouse.audit();
    let of = |event: &str, member: &str| -> Vec<Value> {
        records
            .iter()
            .filter(|record| record["event"] == event)
            .map(|record| record[member].clone())
            .collect()
    };
    let mut table = Table::new("records");
    let hashes = of("call", "arguments_hash");
    table.row("calls", equal(hashes.len(), 3));
    table.row("hashes of equal paths", ensure(hashes[0] != hashes[1], &hashes));
    table.row(
        "outcomes",
        equal(of("outcome", "outcome"), vec![json!("ok"), json!("ok"), json!("tool_failed")]),
    );
    table.row("the denial", equal(of("denial", "decision"), vec![json!("ask")]));
    let approved = of("approval", "digest");
    table.row("digests", ensure(digests.iter().all(|digest| approved.contains(digest)), &approved));
    table.finish();
}
