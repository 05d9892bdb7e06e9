//! Zygotes are renewed by count, by age and after a crash: what a program learned of one is worth nothing later, and nobody
//! waits for it.

use lockhouse_tests::{LANGUAGES, Lockhouse, Session, Table, ensure, wait_until};

use crate::zygotes;

/// A stack that overflows in C, and a mistake of QuickJS's own.
const CRASH: [&str; 2] = [
    include_str!("../../hostile/python/bomb_stack.py"),
    include_str!("../../hostile/typescript/engine_weak_reference_abort.ts"),
];
/// What differs from zygote to zygote: Python's hash seed; the address layout shows in no value of TypeScript.
const SEED: &str = "hash('lockhouse')";

/// The zygote of a language, when there is just one.
fn only_zygote(session: &Session, language: &str) -> Option<u32> {
    let is_python = language == "python";
    let of_that_language = zygotes(session).into_iter().filter(|it| it.command.contains(" -I ") == is_python);
    let pids: Vec<u32> = of_that_language.map(|zygote| zygote.pid).collect();
    (pids.len() == 1).then(|| pids[0])
}

/// Waits until another zygote has taken the place of `old`, which has gone.
async fn renewed(session: &Session, language: &str, old: u32) -> u32 {
    wait_until("a new zygote is alone", async || only_zygote(session, language).filter(|new| *new != old))
        .await
}

#[tokio::test]
async fn after_a_crash_the_next_programs_have_another_zygote() {
    let lockhouse = Lockhouse::new();
    let session = lockhouse.serve().await;
    let mut table = Table::new("renewal after a crash");
    for (language, crash) in LANGUAGES.into_iter().zip(CRASH) {
        let old = wait_until("a zygote", async || only_zygote(&session, language)).await;
        let seed = session.run_code("python", SEED).await["value"].clone();
        let same = session.run_code("python", SEED).await["value"].clone();
        table.row("control: the seed is the same in one zygote", ensure(seed == same, (&seed, &same)));
        let crashed = session.run_code(language, crash).await;
        table.row(format!("{language}: it crashes"), ensure(crashed["status"] == "killed", &crashed));
        let new = renewed(&session, language, old).await;
        table.row(format!("{language}: another zygote"), ensure(new != old, (old, new)));
        if language == "python" {
            let later = session.run_code("python", SEED).await["value"].clone();
            table.row("python: another hash seed", ensure(later != seed, (&seed, &later)));
        }
    }
    table.finish();
}

#[tokio::test]
async fn a_zygote_that_has_served_is_renewed_when_it_is_old() {
    let lockhouse = Lockhouse::new().config("[pool]\nrecycle_seconds = 1\n");
    let session = lockhouse.serve().await;
    for language in LANGUAGES {
        // Before it has served: from then on it may be renewed at any time.
        let old = wait_until("a zygote", async || only_zygote(&session, language)).await;
        session.run_code(language, "1 + 1").await;
        renewed(&session, language, old).await;
        assert_eq!(session.run_code(language, "1 + 1").await["value"], 2);
    }
}

#[tokio::test]
async fn programs_go_on_while_zygotes_are_renewed_by_count() {
    let lockhouse = Lockhouse::new().config("[pool]\nrecycle_after = 8\n");
    let session = lockhouse.serve().await;
    for language in LANGUAGES {
        let first = wait_until("a zygote", async || only_zygote(&session, language)).await;
        let mut answers = Vec::new();
        for _ in 0..60 {
            answers.push(session.run_code(language, "1 + 1").await);
        }
        assert!(answers.iter().all(|answer| answer["value"] == 2), "{answers:?}");
        renewed(&session, language, first).await;
    }
}
