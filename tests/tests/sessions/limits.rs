//! Tests of the limits of sessions: their number, their lifetime, and the resources of each run.

use lockhouse_tests::{LANGUAGES, Lockhouse, Table, ensure, equal, is_alive, wait_until};
use serde_json::json;

use crate::sessions::{outcome_text, workers};

#[tokio::test]
async fn at_the_limit_new_sessions_are_refused_and_none_is_evicted() {
    let lockhouse = Lockhouse::new().config("[sessions]\nmax = 2\n[pool]\nidle = 1\nrunning = 1\n");
    let session = lockhouse.serve().await;
    let mut table = Table::new("the limit on sessions");
    for name in ["one", "two"] {
        let answer = session.run_in(name, "python", "x = 1; x").await;
        table.row(name, equal(outcome_text(&answer), "1".into()));
    }
    let third = session.run_in("three", "python", "1").await;
    let words = outcome_text(&third);
    for part in ["2 sessions are open", "one (idle for 0 s)", "two (idle for 0 s)", "lockhouse sessions end"]
    {
        table.row(format!("the third is told: {part}"), ensure(words.contains(part), &words));
    }
    table.row(
        "they take no place of those that run",
        equal(outcome_text(&session.run_code("python", "1").await), "1".into()),
    );
    for name in ["one", "two"] {
        table.row(
            format!("{name} is there"),
            equal(outcome_text(&session.run_in(name, "python", "x").await), "1".into()),
        );
    }
    let ended = lockhouse.run(&["sessions", "end", "one"]);
    table.row("one is ended", equal(ended.status, Some(0)));
    table.row(
        "and there is room",
        equal(outcome_text(&session.run_in("three", "python", "1").await), "1".into()),
    );
    table.finish();
}

#[tokio::test]
async fn idle_and_old_sessions_expire() {
    let mut table = Table::new("expired sessions");
    for (key, words) in [
        ("idle_seconds", "it was not used for 0.3 s"),
        ("life_seconds", "it reached the maximum age of 0.3 s"),
    ] {
        let lockhouse = Lockhouse::new().config(&format!("[sessions]\n{key} = 0.3\n[pool]\nidle = 1\n"));
        let session = lockhouse.serve().await;
        for language in LANGUAGES {
            let value = session.run_in(language, language, "1").await;
            table.row(format!("{key}, {language}: control"), equal(outcome_text(&value), "1".into()));
        }
        let list = async || lockhouse.run(&["sessions", "list"]).stdout;
        wait_until("both are gone", async || list().await.contains("No session").then_some(())).await;
        for language in LANGUAGES {
            let answer = session.run_in(language, language, "1").await;
            let said = outcome_text(&answer);
            let holds = answer["error"]["type"] == "SessionEnded" && said.contains(words);
            table.row(format!("{key}, {language}: told"), ensure(holds, &answer));
            let again = session.run_in(language, language, "1").await;
            table.row(format!("{key}, {language}: once"), equal(&again["session"]["new"], &true.into()));
        }
    }
    table.finish();
}

#[tokio::test]
async fn an_idle_session_uses_no_cpu_time() {
    let session = Lockhouse::new().serve().await;
    let code = "import threading, os\nthreading.Thread(target=lambda: [None for _ in iter(int, 1)], daemon=True).start()\nos.getpid()";
    session.run_in("spins", "python", code).await;
    let state = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").and_then(|(_, fields)| fields.chars().next())
    };
    wait_until("one worker is stopped", async || {
        workers(&session).iter().any(|worker| state(worker.pid) == Some('T')).then_some(())
    })
    .await;
    let answer = session.run_in("spins", "python", "1 + 1").await;
    assert_eq!(outcome_text(&answer), "2", "and it goes on: {answer}");
}

#[tokio::test]
async fn cpu_time_is_limited_per_run() {
    let lockhouse = Lockhouse::new().config("[limits]\ncpu_seconds = 1\ntimeout_seconds = 20\n");
    let session = lockhouse.serve().await;
    let mut table = Table::new("CPU time of runs, 1 s each");
    let burn = [
        (
            "import time\nx = 1\nend = time.process_time() + 0.7\nwhile time.process_time() < end: pass",
            "while True: pass",
            "x",
        ),
        ("let x = 1; let end = performance.now() + 700; while (performance.now() < end);", "for (;;);", "x"),
    ];
    for (language, (some, all, look)) in LANGUAGES.into_iter().zip(burn) {
        for run in 1..=2 {
            let answer = session.run_in(language, language, some).await;
            table.row(format!("{language}: 0.7 s, run {run}"), equal(answer["status"].as_str(), Some("ok")));
        }
        let answer = session.run_in(language, language, all).await;
        table.row(
            format!("{language}: more"),
            ensure(outcome_text(&answer).contains("CPU time limit of 1 s"), &answer),
        );
        let cpu = answer["stats"]["cpu_ms"].as_f64().unwrap_or_default();
        table.row(format!("{language}: of this run alone"), ensure((900.0..1_900.0).contains(&cpu), cpu));
        let answer = session.run_in(language, language, look).await;
        table.row(format!("{language}: the names are there"), equal(outcome_text(&answer), "1".into()));
    }
    let answer = session.run_in("python", "python", "sum(range(10**15))").await;
    let killed =
        outcome_text(&answer).contains("CPU time limit of 1 s") && !answer["session"]["ended"].is_null();
    table.row("one that does not stop is killed", ensure(killed, &answer));
    table.finish();
}

#[tokio::test]
async fn output_is_limited_per_run() {
    let lockhouse = Lockhouse::new().config("[limits]\noutput_kib = 16\n");
    let session = lockhouse.serve().await;
    let mut table = Table::new("output of runs, 16 KiB each");
    for (language, print, too_much) in [
        ("python", "print('x' * 10_000)", "print('x' * 20_000)"),
        ("typescript", "console.log('x'.repeat(10000))", "console.log('x'.repeat(20000))"),
    ] {
        for run in 1..=3 {
            let answer = session.run_in(language, language, print).await;
            table.row(format!("{language}: 10 KB, run {run}"), equal(answer["status"].as_str(), Some("ok")));
        }
        let answer = session.run_in(language, language, too_much).await;
        let ended = outcome_text(&answer).contains("output limit") && !answer["session"]["ended"].is_null();
        table.row(format!("{language}: 20 KB end it"), ensure(ended, &answer));
    }
    table.finish();
}

#[tokio::test]
async fn memory_is_limited_per_session() {
    let lockhouse = Lockhouse::new().config("[limits]\nmemory_mib = 64\n");
    let session = lockhouse.serve().await;
    let mut table = Table::new("the memory of a session, 64 MiB");
    for (language, keep, more, free) in [
        (
            "python",
            "kept = [b'x' * 1_000_000 for _ in range(30)]",
            "more = [b'x' * 1_000_000 for _ in range(60)]",
            "kept = None; 1",
        ),
        (
            "typescript",
            "let kept = Array.from({length: 30}, () => new Uint8Array(1e6).fill(1))",
            "let more = Array.from({length: 60}, () => new Uint8Array(1e6).fill(1))",
            "kept = []; 1",
        ),
    ] {
        let answer = session.run_in(language, language, keep).await;
        table.row(format!("{language}: 30 MB"), equal(answer["status"].as_str(), Some("ok")));
        let answer = session.run_in(language, language, more).await;
        table.row(
            format!("{language}: 60 MB more"),
            ensure(outcome_text(&answer).contains("memory limit of 64 MiB"), &answer),
        );
        if answer["session"]["ended"].is_null() {
            let answer = session.run_in(language, language, free).await;
            table.row(format!("{language}: goes on with less"), equal(outcome_text(&answer), "1".into()));
        }
    }
    table.finish();
}

#[tokio::test]
async fn no_process_of_a_session_survives_the_server() {
    for way in ["close", "terminate", "kill"] {
        let session = Lockhouse::new().serve().await;
        for language in LANGUAGES {
            session.run_in(language, language, "1").await;
        }
        drop(
            session.start_with(json!({"language": "python", "code": "while True: pass", "session": "runs"})),
        );
        wait_until("it runs", async || (workers(&session).len() >= 3).then_some(())).await;
        let started = lockhouse_tests::descendants(session.pid());
        match way {
            "close" => drop(session.close().await),
            "terminate" => drop(session.terminate().await),
            _ => drop(session.kill().await),
        }
        wait_until("every process is gone", async || {
            started.iter().all(|process| !is_alive(process.pid)).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_session_survives_the_replacement_of_its_zygote() {
    let lockhouse = Lockhouse::new().config("[pool]\nidle = 1\nrecycle_after = 1\n");
    let session = lockhouse.serve().await;
    session.run_in("s", "python", "x = 1").await;
    for _ in 0..5 {
        let answer = session.run_code("python", "1").await;
        assert_eq!(outcome_text(&answer), "1", "{answer}");
    }
    let answer = session.run_in("s", "python", "x").await;
    assert_eq!(outcome_text(&answer), "1", "{answer}");
}
