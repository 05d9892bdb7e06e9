//! Tests of the replacement of zygotes after a number of executions, at a maximum age, and after a crash. What a
//! program has learned about its zygote, such as the address layout, is useless after the replacement. A replacement
//! must not delay any program.

use lockhouse_tests::{LANGUAGES, Lockhouse, Session, Table, ensure, wait_until};

use crate::resilience::zygotes;

/// Programs that crash their worker: by a stack overflow in C code (Python), and by a bug of QuickJS (TypeScript).
const CRASH: [&str; 2] = [
    include_str!("../../hostile/python/bomb_stack.py"),
    include_str!("../../hostile/typescript/engine_weak_reference_abort.ts"),
];
/// A Python expression whose value differs between zygotes, because each has its own hash seed. There is no such
/// expression for TypeScript.
const SEED: &str = "hash('lockhouse')";

/// Returns the process id of the zygote of a language, or `None` if the language has no zygote or several at the
/// moment.
fn only_zygote(session: &Session, language: &str) -> Option<u32> {
    let is_python = language == "python";
    let of_that_language = zygotes(session).into_iter().filter(|it| it.command.contains(" -I ") == is_python);
    let pids: Vec<u32> = of_that_language.map(|zygote| zygote.pid).collect();
    (pids.len() == 1).then(|| pids[0])
}

/// Waits until a new zygote has replaced the zygote with the process id `old`, and returns the new zygote's process id.
async fn wait_for_renewal(session: &Session, language: &str, old: u32) -> u32 {
    wait_until("a new zygote is alone", async || only_zygote(session, language).filter(|new| *new != old))
        .await
}

#[tokio::test]
async fn after_a_crash_the_next_programs_use_a_new_zygote() {
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
        let new = wait_for_renewal(&session, language, old).await;
        table.row(format!("{language}: another zygote"), ensure(new != old, (old, new)));
        if language == "python" {
            let later = session.run_code("python", SEED).await["value"].clone();
            table.row("python: another hash seed", ensure(later != seed, (&seed, &later)));
        }
    }
    table.finish();
}

#[tokio::test]
async fn a_used_zygote_is_replaced_at_its_maximum_age() {
    let lockhouse = Lockhouse::new().config("[pool]\nrecycle_seconds = 1\n");
    let session = lockhouse.serve().await;
    for language in LANGUAGES {
        // This runs before the zygote has served a program: afterwards it may be replaced at any time.
        let old = wait_until("a zygote", async || only_zygote(&session, language)).await;
        session.run_code(language, "1 + 1").await;
        wait_for_renewal(&session, language, old).await;
        assert_eq!(session.run_code(language, "1 + 1").await["value"], 2);
    }
}

#[tokio::test]
async fn programs_run_while_zygotes_are_replaced_by_count() {
    let lockhouse = Lockhouse::new().config("[pool]\nrecycle_after = 8\n");
    let session = lockhouse.serve().await;
    for language in LANGUAGES {
        let first = wait_until("a zygote", async || only_zygote(&session, language)).await;
        let mut answers = Vec::new();
        for _ in 0..60 {
            answers.push(session.run_code(language, "1 + 1").await);
        }
        assert!(answers.iter().all(|answer| answer["value"] == 2), "{answers:?}");
        wait_for_renewal(&session, language, first).await;
    }
}
