//! Attempts to use another engine than the requirements determine, or to evade them with an engine or a front elsewhere.

use lockhouse_tests::{Session, descendants};
use serde_json::json;

use super::Row;
use crate::requirements::attempts::{Host, boxed};
use crate::requirements::{ADD, server};

const OWN: &str = "[sharing]\nengine = \"own\"\n";
const SHARED: &str = "[sharing]\nengine = \"shared\"\nidle_seconds = 1\ndirectory = \"/\"\n";
const DIRECTORY: &str = "[sharing]\ndirectory = \"ROOT/home\"\n";
const SHARED_SERVERS: &str =
    "[sharing]\nengine = \"shared\"\nidle_seconds = 1\ndirectory = \"/\"\n[servers.\"*\"]\nshare = true\n";
const DENIED: &str = "[[denied]]\nname = \"fixture\"\n";
const CODE_ONLY: &str = "expose = \"code\"\n";

/// Returns whether the engine of a client is the process that the client started.
async fn has_own_engine(session: &Session) -> (bool, String) {
    let answer = session.run_code("python", ADD).await;
    let below = descendants(session.pid());
    let runs_server = below.iter().any(|process| process.command.contains("fixture-server"));
    (answer["value"] == 42 && runs_server, format!("{answer} {below:?} {}", session.log()))
}

/// Returns whether a program can call the server over an engine whose directories the user has chosen.
async fn calls(it: &Host, options: &[&str], variables: &[(&str, std::path::PathBuf)]) -> (bool, String) {
    let session = it.serve(options, variables).await;
    let answer = session.run_code("python", ADD).await;
    let log = session.close().await.stderr;
    (answer["value"] == 42, format!("{answer} {log}"))
}

pub(super) fn rows() -> Vec<Row> {
    vec![
        ("sharing", "a shared engine instead of the own one", OWN, |it| {
            boxed(async {
                it.config(&format!("{SHARED}{}", server("fixture")));
                let session = it.serve(&[], &[]).await;
                let (is_own, log) = has_own_engine(&session).await;
                session.close().await;
                (!is_own, log)
            })
        }),
        ("sharing", "an own engine in the configuration", SHARED, |it| {
            boxed(async {
                it.config(&format!("{OWN}{}", server("fixture")));
                has_own_engine(&it.serve(&[], &[]).await).await
            })
        }),
        ("sharing", "--own", SHARED, |it| {
            boxed(async { has_own_engine(&it.serve(&["--own"], &[]).await).await })
        }),
        ("sharing", "a server that is not shared", SHARED_SERVERS, |it| {
            boxed(async {
                it.config(&format!("{SHARED}{}share = false\n", server("fixture")));
                has_own_engine(&it.serve(&[], &[]).await).await
            })
        }),
        ("sharing", "another directory for servers", DIRECTORY, |it| {
            boxed(async {
                std::fs::create_dir(it.path("away")).unwrap();
                it.config(&format!("[sharing]\ndirectory = {:?}\n{}", it.path("away"), server("fixture")));
                let session = it.serve(&[], &[]).await;
                let answer = session.run_code("python", ADD).await;
                let below = descendants(session.pid()).into_iter();
                let server = below.filter(|process| process.command.contains("fixture-server"));
                let places: Vec<_> = server
                    .map(|server| std::fs::read_link(format!("/proc/{}/cwd", server.pid)).unwrap())
                    .collect();
                (places == [it.path("away")], format!("{answer} {places:?}"))
            })
        }),
        ("sharing", "a shared engine in other directories", DENIED, |it| {
            boxed(async {
                it.config(&format!("{SHARED}{}", server("fixture")));
                std::fs::create_dir(it.path("away")).unwrap();
                let variables = ["XDG_STATE_HOME", "XDG_RUNTIME_DIR"].map(|name| (name, it.path("away")));
                calls(it, &[], &variables).await
            })
        }),
        ("sharing", "an unlisted tool is called", CODE_ONLY, |it| {
            boxed(async {
                let session = it.serve(&["--expose", "direct"], &[]).await;
                let called = session.call("fixture__add", json!({"a": 40, "b": 2})).await;
                let is_done = called.as_ref().is_ok_and(|result| result.is_error != Some(true));
                (is_done, format!("{called:?}"))
            })
        }),
    ]
}
