//! Tests of the progress notifications of upstream servers: Lockhouse forwards them to the AI client, and each one
//! extends the configured timeout of its call.

use lockhouse_tests::{ClientUser, Lockhouse, Session};
use serde_json::json;

fn lockhouse(call_timeout_seconds: u32) -> Lockhouse {
    let command = lockhouse_tests::fixture_server();
    let config = format!(
        "[servers.older]\ncommand = {command:?}\nargs = [\"--asking\"]\ncall_timeout_seconds = {call_timeout_seconds}\n"
    );
    Lockhouse::new().policy("version = 1\n[servers.older]\nallow = [\"*\"]\n").config(&config)
}

#[tokio::test]
async fn progress_is_forwarded_at_most_ten_times_a_second() {
    let lockhouse = lockhouse(60);
    for mode in [rmcp::service::ClientLifecycleMode::Initialize, Session::latest()] {
        let person = ClientUser::default();
        let session = Session::connect_as(person.clone(), lockhouse.command(&["serve"]), mode).await;
        let code = "from mcp_tools import older\nolder.progress(notes=300, every_ms=3)";
        let begun = std::time::Instant::now();
        let answer = session.run_asking(code).await;
        let most = begun.elapsed().as_millis() as usize / 100 + 2;
        assert_eq!(answer["value"], json!({"notes": 300}), "{answer}");
        let notes = person.progress_notifications();
        assert!(!notes.is_empty() && notes.len() <= most, "{} notes, at most {most}", notes.len());
        assert!(notes.windows(2).all(|pair| pair[0].progress < pair[1].progress), "{notes:?}");
        // Progress of the upstream call, without the notifications that Lockhouse adds about the run.
        let of_the_server = |words: &str| words.starts_with("older.progress: step\u{fffd} ");
        assert!(notes.iter().any(|note| note.message.as_deref().is_some_and(of_the_server)), "{notes:?}");
    }
}

#[tokio::test]
async fn progress_extends_the_configured_timeout_but_not_a_timeout_set_by_code() {
    let lockhouse = lockhouse(1);
    let session = lockhouse.serve().await;
    let call = |more: &str| {
        format!(
            "from mcp_tools import call_tool\ncall_tool('older.progress', {{'notes': 8, 'every_ms': 300}}{more})"
        )
    };
    assert_eq!(session.run_code("python", &call("")).await["value"], json!({"notes": 8}));
    let answer = session.run_code("python", &call(", timeout=1.2")).await;
    assert_eq!(answer["error"]["code"], "timeout", "{answer}");
    let silent = session.run_code("python", "from mcp_tools import older\nolder.slow(ms=2400)").await;
    assert_eq!(silent["error"]["code"], "timeout", "{silent}");
}
