//! Hostile programs under load: how long after its deadline each ends, and what they leave behind.
//!
//! Two clocks tell how late an execution was. The first is in the answer, the supervisor's own `wall_ms`: from the
//! moment at which code goes to a worker to the moment at which its end is known, without the wait for a worker before
//! and the way of the answer after. What it has above the timeout is the lateness, and of the 250 ms that are promised
//! 100 are the grace that every program has after its interrupt. The second is the client's own, from the request to the
//! answer. It is judged as well where so few run at a time that each finds an idle worker.
//!
//! An answer leaves when its program has been sent SIGKILL, and the kernel then takes the process apart. How long the
//! last ones are still there is a figure of its own.
//!
//! Only executions that reached their deadline count: what hit a limit first would make the figures look better.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use lockhouse_tests::{ensure, equal};

use super::hostile::{HOSTILE, Hostile};
use super::load::{Answered, Program};
use super::progress::Progress;
use super::remains;
use super::report::{Kind, Report, millis};
use super::server::Server;

const TIMEOUT: Duration = Duration::from_millis(400);
const LATE_MS_MAX: f64 = 250.0;
/// So few that each finds an idle worker of its language.
const FEW: usize = 2;
const DIES_WITHIN: Duration = Duration::from_secs(5);
/// Broken promises that are told one by one.
const TOLD_MAX: usize = 3;

#[derive(Default)]
struct Tally {
    reached: usize,
    latest_ms: f64,
    statuses: BTreeMap<String, usize>,
}

#[derive(Default)]
struct Tallies {
    by_program: BTreeMap<usize, Tally>,
    late_by_answer: Vec<f64>,
    late_by_client: Vec<f64>,
    unexpected: Vec<String>,
    answers: usize,
}

/// Runs `count` of them, `at_a_time` at one time.
pub(crate) async fn deadlines(count: usize, at_a_time: usize) -> Report {
    let mut report = Report::new(format!("deadlines, {at_a_time} at a time"));
    let server = Server::start().await;
    let mut progress = Progress::new("deadlines", count);
    let mut tallies = Tallies::default();
    let mut numbers = 0..count;
    let programs = || {
        let number = numbers.next()?;
        let Hostile { language, code, .. } = HOSTILE[number % HOSTILE.len()];
        Some(Program { number, language, code: code.to_owned(), timeout: Some(TIMEOUT) })
    };
    server
        .client
        .load(at_a_time, programs, |answered| {
            progress.step();
            tallies.add(&answered);
        })
        .await;
    let answered = Instant::now();
    let dead = remains::until(DIES_WITHIN, || remains::nothing_runs(server.pid)).await;
    let dying = answered.elapsed();
    report.figure("executions", count as f64, "");
    report.figure("took", progress.seconds(), "s");
    tallies.judge(&mut report, count, at_a_time);
    report.figure("from the last answer until no process of a program is alive", millis(dying), "ms");
    report.promise(Kind::Count, "with the last answer the last program is dead", dead);
    report.promise(
        Kind::Count,
        "nothing is left but idle workers, and no zombie",
        server.settled().await.map(drop),
    );
    server.close(&mut report).await;
    report
}

impl Tallies {
    fn add(&mut self, answered: &Answered) {
        let which = answered.program.number % HOSTILE.len();
        let tally = self.by_program.entry(which).or_default();
        let status = answered.text("/status").to_owned();
        if !is_expected(&HOSTILE[which], &status, answered.text("/error/message")) {
            self.unexpected.push(answered.shown());
        }
        *tally.statuses.entry(status).or_default() += 1;
        let Ok(answer) = &answered.answer else { return };
        self.answers += 1;
        let wall_ms =
            answer.pointer("/stats/wall_ms").and_then(|wall| wall.as_f64()).unwrap_or(f64::INFINITY);
        let late = wall_ms - millis(TIMEOUT);
        if late >= 0.0 {
            tally.reached += 1;
            tally.latest_ms = tally.latest_ms.max(late);
            self.late_by_answer.push(late);
            self.late_by_client.push(millis(answered.took) - millis(TIMEOUT));
        }
    }

    fn judge(self, report: &mut Report, count: usize, at_a_time: usize) {
        let judged = |p99: f64| ensure(p99 <= LATE_MS_MAX, p99);
        let reached = self.late_by_answer.len();
        let [_, by_answer, _] = report.times("late by the answer's clock", self.late_by_answer);
        let [_, by_client, _] = report.times("late by the client's clock", self.late_by_client);
        for (which, tally) in &self.by_program {
            let name = format!("{}: {}", HOSTILE[*which].language, HOSTILE[*which].name);
            let statuses: Vec<String> =
                tally.statuses.iter().map(|(status, count)| format!("{status} {count}")).collect();
            report.remarked(format!("latest {name}"), tally.latest_ms, "ms", statuses.join(", "));
        }
        report.promise(Kind::Count, "each has its answer", equal(self.answers, count));
        let told: Vec<&String> = self.unexpected.iter().take(TOLD_MAX).collect();
        report.promise(
            Kind::Count,
            "each ends at its deadline, at a limit or with an error, as its kind does",
            ensure(told.is_empty(), (self.unexpected.len(), told)),
        );
        report.promise(
            Kind::Count,
            "control: at least a third of them reach their deadline",
            ensure(3 * reached >= count, reached),
        );
        report.promise(
            Kind::Measure,
            format!("p99 within {LATE_MS_MAX} ms of the deadline by the answer's clock"),
            judged(by_answer),
        );
        if at_a_time <= FEW {
            let name = format!("p99 within {LATE_MS_MAX} ms of the deadline by the client's clock");
            report.promise(Kind::Measure, name, judged(by_client));
        }
    }
}

fn is_expected(program: &Hostile, status: &str, message: &str) -> bool {
    // Where C code of the interpreter finds no memory, it may only abort.
    let aborted = status == "killed" && message.contains("for want of memory");
    match program.spins {
        true => status == "timeout" && !message.is_empty(),
        false => ["error", "limit", "timeout"].contains(&status) && !message.is_empty() || aborted,
    }
}
