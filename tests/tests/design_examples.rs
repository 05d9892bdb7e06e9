//! Runs the example programs in `tests/seeds` unchanged. They come from the original design documents and are written
//! in the styles of similar products, which Lockhouse supports too.

use std::path::Path;

use lockhouse_tests::{EARLIER_PRODUCTS_SERVERS, Lockhouse, Session, Table, ensure, equal, structured};
use serde_json::{Value, json};

/// An example program with its expected outcome.
#[derive(Default)]
struct Seed {
    file: &'static str,
    /// The upstream servers that the program needs. An empty list stands for all servers.
    servers: &'static [&'static str],
    value: Value,
    /// The beginning of the program's expected standard output.
    printed: &'static str,
    /// The upstream calls that the program must make, each as `server.tool`.
    calls: &'static [&'static str],
    kept_out_min: u64,
}

fn seeds() -> Vec<Seed> {
    let discovered = json!({
        "found": ["mcp__filesystem__list_files", "mcp__filesystem__read_file", "mcp__filesystem__write"],
        "parameters": [["file_path"], ["file_path", "offset"]],
        "named": ["mcp__filesystem__read_file", "string", "string"],
        "result": "The first line.\nThe second line.\n",
    });
    vec![
        Seed {
            file: "research_pipeline.py",
            printed: "Added 28 high-impact papers\n",
            calls: &["arxiv.search_papers", "chroma.add_documents"],
            kept_out_min: 90_000,
            ..Seed::default()
        },
        Seed {
            file: "disclosure.py",
            servers: &["chroma", "arxiv", "docker"],
            printed: "['arxiv', 'chroma', 'docker']\n[{'name': 'add_documents'",
            ..Seed::default()
        },
        Seed {
            file: "ten_thousand_rows.py",
            printed: "Found 2308 pending orders\n[{'order': 2, 'status': 'pending', ",
            calls: &["gdrive.get_sheet"],
            kept_out_min: 800_000,
            ..Seed::default()
        },
        Seed {
            file: "research_assistant.py",
            value: json!({"path": "graphs/transformers.json", "bytes": 262}),
            calls: &["arxiv.search", "chroma.query", "filesystem.write"],
            ..Seed::default()
        },
        Seed {
            file: "devops.py",
            calls: &["docker.ps", "k8s.restart_deployment", "slack.send_message"],
            ..Seed::default()
        },
        Seed {
            file: "list_tables.ts",
            value: json!(["users", "orders", "products"]),
            calls: &["supabase.list_tables"],
            ..Seed::default()
        },
        Seed {
            file: "many_servers.ts",
            value: json!({"userCount": 10, "issueCreated": true, "docsFound": true}),
            calls: &["supabase.execute_sql", "github.create_issue", "context7.get_docs_by_name"],
            ..Seed::default()
        },
        Seed {
            file: "discovery.ts",
            value: discovered.clone(),
            calls: &["filesystem.read_file"],
            ..Seed::default()
        },
        Seed { file: "discovery.py", value: discovered, calls: &["filesystem.read_file"], ..Seed::default() },
    ]
}

fn program(file: &str) -> (&'static str, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(file);
    let language = if file.ends_with(".py") { "python" } else { "typescript" };
    (language, std::fs::read_to_string(path).unwrap())
}

async fn run(session: &Session, file: &str, servers: &[&str]) -> Value {
    let (language, code) = program(file);
    let servers = if servers.is_empty() { &EARLIER_PRODUCTS_SERVERS } else { servers };
    let arguments = json!({"language": language, "code": code, "servers": servers});
    structured(session.call("run_code", arguments).await)
}

fn outcome(seed: &Seed, answer: &Value, calls: &[Value]) -> Result<(), String> {
    ensure(answer["status"] == "ok", answer)?;
    equal(&answer["value"], &seed.value)?;
    let printed = answer["stdout"].as_str().unwrap_or_default();
    ensure(printed.starts_with(seed.printed) && printed.is_empty() == seed.printed.is_empty(), printed)?;
    let name =
        |call: &Value| format!("{}.{}", call["server"].as_str().unwrap(), call["tool"].as_str().unwrap());
    equal(
        calls.iter().map(name).collect::<Vec<_>>(),
        seed.calls.iter().map(|&call| call.to_owned()).collect(),
    )?;
    let kept_out = &answer["stats"]["bytes_kept_out"];
    ensure(kept_out.as_u64().unwrap_or_default() >= seed.kept_out_min, kept_out)?;
    ensure(answer.to_string().len() < 5_000, answer.to_string().len())
}

/// Runs each example program with three forms of tool results: structured, wrapped and text. Its outcome must be the
/// same with each form.
#[tokio::test]
async fn the_design_examples_run_unchanged() {
    let mut table = Table::new("examples, by the form of their servers' results");
    for form in ["any", "wrapped", "text"] {
        let lockhouse = Lockhouse::with_canned(&EARLIER_PRODUCTS_SERVERS, form);
        let session = lockhouse.serve().await;
        for seed in seeds() {
            let before = lockhouse.calls().len();
            let answer = run(&session, seed.file, seed.servers).await;
            table
                .row(format!("{form}: {}", seed.file), outcome(&seed, &answer, &lockhouse.calls()[before..]));
        }
    }
    table.finish();
}

#[tokio::test]
async fn positional_arguments_are_mapped_to_their_names() {
    let lockhouse = Lockhouse::with_canned(&EARLIER_PRODUCTS_SERVERS, "any");
    let session = lockhouse.serve().await;
    run(&session, "list_tables.ts", &[]).await;
    run(&session, "many_servers.ts", &[]).await;
    let arguments: Vec<Value> = lockhouse.calls().into_iter().map(|call| call["arguments"].clone()).collect();
    let issue = json!({"owner": "owner", "repo": "repo", "title": "User Analysis", "body": "Found 10 users"});
    let expected = [
        json!({"schemas": ["public"]}),
        json!({"query": "SELECT * FROM users LIMIT 10"}),
        issue,
        json!({"library": "supabase-js", "topic": "RLS"}),
    ];
    assert_eq!(arguments, expected);
}

#[tokio::test]
async fn invalid_arguments_are_reported_as_missing_or_of_the_wrong_type() {
    let lockhouse = Lockhouse::with_canned(&["filesystem"], "any");
    let session = lockhouse.serve().await;
    let answer = run(&session, "wrong_arguments.ts", &["filesystem"]).await;
    let summary = |index: usize| {
        assert_eq!(answer["value"][index][0], "invalid_arguments", "{answer}");
        answer["value"][index][1].as_str().unwrap().to_owned()
    };
    assert!(summary(0).contains("file_path"), "{answer}");
    assert!(summary(1).contains("offset") && summary(1).contains("integer"), "{answer}");
    assert!(lockhouse.calls().is_empty());
}

/// Runs an example that needs pandas. If this machine has no pandas, the test checks instead that the error mentions
/// the command that installs the library.
#[tokio::test]
async fn a_data_frame_can_be_created_if_pandas_is_preloaded() {
    let python = std::process::Command::new("python3").args(["-c", "import pandas"]).output().unwrap();
    let lockhouse = Lockhouse::with_canned(&EARLIER_PRODUCTS_SERVERS, "any");
    if !python.status.success() {
        let session = lockhouse.serve().await;
        let answer = run(&session, "data_pipeline.py", &[]).await;
        let error = answer["error"].to_string();
        assert!(error.contains("lockhouse python add pandas"), "{answer}");
        return;
    }
    let config = std::fs::read_to_string(lockhouse.path("config/lockhouse/config.toml")).unwrap();
    let lockhouse = lockhouse.config(&format!("[python]\npreload = [\"pandas\"]\n{config}"));
    let session = lockhouse.serve().await;
    let answer = run(&session, "data_pipeline.py", &[]).await;
    assert_eq!(answer["value"], json!({"updated": "abc", "columns": ["revenue"]}), "{answer}");
}

/// One program saves a skill, and a second program imports it in a later MCP connection. Nothing but the skill store
/// connects the two programs.
#[tokio::test]
async fn a_saved_skill_can_be_used_by_a_later_session() {
    let mut table = Table::new("saved skills");
    let rows = [
        ("skill_saved.py", json!("saved"), "skill_reused.py", json!("Added 50 papers on quantum computing")),
        (
            "skill_saved.ts",
            json!(["db-backup-report"]),
            "skill_reused.ts",
            json!({"tables": 3, "lastMigration": "create_orders", "timestamp": "string"}),
        ),
    ];
    for (saving, saved, using, used) in rows {
        let lockhouse = Lockhouse::with_canned(&EARLIER_PRODUCTS_SERVERS, "any");
        let policy = std::fs::read_to_string(lockhouse.path("config/lockhouse/policy.toml")).unwrap();
        let lockhouse = lockhouse.policy(&format!("{policy}[servers.skills]\nallow = [\"save\"]\n"));
        for (file, expected) in [(saving, saved), (using, used)] {
            let (language, code) = program(file);
            let answer = lockhouse.serve().await.run_code(language, &code).await;
            let right = answer["status"] == "ok" && answer["value"] == expected;
            table.row(file, ensure(right, &answer));
        }
    }
    table.finish();
}
