//! Tests of workers, zygotes and upstream servers that are killed while code runs.

use lockhouse_tests::{
    LANGUAGES, Lockhouse, Process, Session, children, is_alive, kill, structured, wait_until,
};

use crate::resilience::{is_upstream, wait_for_calls, workers, zygotes};

const SLOW: [&str; 2] =
    ["from mcp_tools.fixture import slow\nslow(ms=60000)", "await fixture.slow({ms: 60000})"];
const LOOP: [&str; 2] = ["while True: pass", "for (;;);"];

/// Returns the user CPU time of a process in clock ticks, or `None` if the process does not exist.
fn ticks(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(11)?.parse().ok()
}

/// Kills a process. Does nothing if the process has already exited, as an idle worker may do at any time.
fn kill_if_alive(process: Process) {
    if is_alive(process.pid) {
        kill(process.pid);
    }
}

async fn wait_until_gone(processes: &[Process]) {
    wait_until("they are gone", async || processes.iter().all(|it| !is_alive(it.pid)).then_some(())).await;
}

async fn check_that_code_runs(session: &Session) {
    for language in LANGUAGES {
        let next = session.run_code(language, "1 + 1").await;
        assert_eq!(next["value"], 2, "the next program: {next}");
    }
}

#[tokio::test]
async fn a_worker_that_is_killed_gives_one_clear_answer_and_the_next_program_runs() {
    let lockhouse = Lockhouse::new();
    let session = lockhouse.serve().await;
    for (language, code) in LANGUAGES.into_iter().zip(LOOP) {
        let running = session.start_code(language, code);
        let busy = wait_until("a worker is busy", async || {
            let workers = workers(&session);
            workers.into_iter().find(|worker| ticks(worker.pid).is_some_and(|ticks| ticks > 30))
        })
        .await;
        kill(busy.pid);
        let answer = structured(running.await.unwrap());
        assert_eq!(answer["status"], "killed", "{answer}");
        assert!(answer["error"]["message"].as_str().is_some_and(|told| told.contains("SIGKILL")), "{answer}");
        check_that_code_runs(&session).await;
    }
}

#[tokio::test]
async fn when_all_workers_are_killed_at_once_each_program_gets_its_answer() {
    let lockhouse = Lockhouse::with_fixture();
    let session = lockhouse.serve().await;
    let running = [0, 1, 0, 1].map(|language| session.start_code(LANGUAGES[language], SLOW[language]));
    wait_for_calls(&lockhouse, 4).await;
    workers(&session).into_iter().for_each(kill_if_alive);
    for running in running {
        let answer = structured(running.await.unwrap());
        assert_eq!(answer["status"], "killed", "{answer}");
    }
}

#[tokio::test]
async fn idle_workers_that_were_killed_are_not_handed_out() {
    let lockhouse = Lockhouse::new().config("[pool]\nidle = 1\n");
    let session = lockhouse.serve().await;
    check_that_code_runs(&session).await;
    let idle = wait_until("one worker of each language is idle", async || {
        Some(workers(&session)).filter(|workers| workers.len() == 2)
    })
    .await;
    idle.iter().cloned().for_each(kill_if_alive);
    wait_until_gone(&idle).await;
    check_that_code_runs(&session).await;
}

#[tokio::test]
async fn when_the_zygotes_are_killed_each_program_gets_its_answer_and_new_ones_start() {
    let lockhouse = Lockhouse::with_fixture();
    let session = lockhouse.serve().await;
    let running = [0, 1].map(|language| session.start_code(LANGUAGES[language], SLOW[language]));
    wait_for_calls(&lockhouse, 2).await;
    let (zygotes, workers) = (zygotes(&session), workers(&session));
    assert!(zygotes.len() == 2 && workers.len() >= 2, "{zygotes:?} {workers:?}");
    for zygote in &zygotes {
        kill(zygote.pid);
    }
    for running in running {
        let answer = structured(running.await.unwrap());
        assert_eq!(answer["status"], "killed", "{answer}");
        assert!(answer["error"]["message"].as_str().is_some_and(|told| !told.is_empty()), "{answer}");
    }
    check_that_code_runs(&session).await;
    wait_until_gone(&workers).await;
}

#[tokio::test]
async fn zygotes_that_are_killed_while_nothing_runs_are_replaced() {
    let lockhouse = Lockhouse::new();
    let session = lockhouse.serve().await;
    check_that_code_runs(&session).await;
    for _ in 0..3 {
        // A zygote that has workers is ready.
        let ready = wait_until("both zygotes are ready", async || {
            let mut ready = zygotes(&session);
            ready.retain(|zygote| !children(zygote.pid).is_empty());
            (ready.len() == 2).then_some(ready)
        })
        .await;
        ready.iter().cloned().for_each(kill_if_alive);
        wait_until_gone(&ready).await;
        check_that_code_runs(&session).await;
    }
}

#[tokio::test]
async fn a_zygote_that_stops_answering_leaves_no_program_without_an_answer() {
    use nix::sys::signal::{Signal, kill};
    let lockhouse = Lockhouse::new().config("[pool]\nidle = 1\n[limits]\ntimeout_seconds = 1\n");
    let session = lockhouse.serve().await;
    check_that_code_runs(&session).await;
    for zygote in zygotes(&session) {
        kill(nix::unistd::Pid::from_raw(zygote.pid as i32), Signal::SIGSTOP).unwrap();
    }
    for _ in 0..4 {
        let answer = session.run_code("python", "1 + 1").await;
        let told = answer["value"] == 2 || answer["error"]["message"].is_string();
        assert!(told, "{answer}");
    }
}

#[tokio::test]
async fn an_upstream_server_killed_during_a_call_is_reported_and_restarted() {
    let rows = [
        (
            "python",
            "from mcp_tools.fixture import slow, add\nfrom mcp_tools import ToolError\n\
            try: slow(ms=60000)\nexcept ToolError as e: told = [e.code, e.retryable, e.server, e.tool]\ntold + [add(a=1, b=2)['sum']]",
        ),
        (
            "typescript",
            "let told\ntry { await fixture.slow({ms: 60000}) } catch (e) { told = [e.code, e.retryable, e.server, e.tool] }\n\
            return [...told, (await fixture.add({a: 1, b: 2})).sum]",
        ),
    ];
    let lockhouse = Lockhouse::with_fixture();
    let session = lockhouse.serve().await;
    for (round, (language, code)) in rows.into_iter().enumerate() {
        let running = session.start_code(language, code);
        wait_for_calls(&lockhouse, 2 * round + 1).await;
        let upstream = children(session.pid()).into_iter().find(is_upstream).expect("the server");
        kill(upstream.pid);
        let answer = structured(running.await.unwrap());
        let expected = serde_json::json!(["upstream_unavailable", true, "fixture", "slow", 3]);
        assert_eq!(answer["value"], expected, "{answer}");
        let outcomes: Vec<_> =
            answer["calls"].as_array().unwrap().iter().map(|call| call["outcome"].clone()).collect();
        assert_eq!(outcomes, ["upstream_unavailable", "ok"], "{answer}");
    }
}

#[tokio::test]
async fn an_upstream_server_that_exits_is_reported_and_restarted() {
    let lockhouse = Lockhouse::with_fixture();
    let session = lockhouse.serve().await;
    let code = "from mcp_tools.fixture import crash, add\nfrom mcp_tools import ToolError\ncodes = []\nfor _ in range(3):\n\
        \x20 try: crash()\n  except ToolError as e: codes.append(e.code)\n  codes.append(add(a=1, b=2)['sum'])\ncodes";
    let answer = session.run_code("python", code).await;
    let lost = "upstream_unavailable";
    assert_eq!(answer["value"], serde_json::json!([lost, 3, lost, 3, lost, 3]), "{answer}");
    let uncaught = session.run_code("typescript", "await fixture.crash({})").await;
    assert_eq!(
        (&uncaught["status"], &uncaught["error"]["code"]),
        (&"error".into(), &lost.into()),
        "{uncaught}"
    );
}
