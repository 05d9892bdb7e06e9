//! Endurance suite: kills workers and zygotes at random under load, and checks that each request gets exactly one
//! answer and that later programs succeed soon.
//!
//! The recovery time is measured strictly: from the kill to the answer, by the client's clock, of the first program
//! in the same language that was *sent* after the kill and succeeded. It includes that program's own run of 20 ms
//! or more.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use lockhouse_tests::{LANGUAGES, Process, children, ensure, equal};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::sync::Notify;

use super::answer_count::answers_by_request;
use super::leftover_resources;
use super::load_client::{Program, ProgramAnswer};
use super::progress::Progress;
use super::report::{Kind, Report, millis};
use super::server::Server;

/// The number of requests in flight per language.
const CLIENTS: usize = 4;
/// On average, one of this number of kills hits a zygote. All other kills hit a worker.
const KILLS_PER_ZYGOTE: u64 = 5;
/// The maximum pause between the recovery from a kill and the next kill, in ms.
const PAUSE_MS_MAX: u64 = 60;
/// The promise: each recovery time, from a kill to the answer of the next program in the same language that succeeds,
/// is less than this.
const RECOVERS_WITHIN: Duration = Duration::from_secs(1);
/// How long the suite waits for the recovery from a kill, before it counts the server as stuck and continues.
const WAIT_TIMEOUT: Duration = Duration::from_secs(20);
/// The maximum number of unexpected answers that the report shows in full. The report also states the number of all
/// of them.
const REPORTED_MAX: usize = 3;

/// One program per language. It runs long enough that a kill can hit it during its computation or during a tool call.
const PROGRAMS: [&str; 2] = [
    "from mcp_tools.fixture import add, slow\nn = add(a=20, b=1)['sum']\nslow(ms=10)\nadd(a=n, b=21)['sum']",
    "const n = (await fixture.add({a: 20, b: 1})).sum\nawait fixture.slow({ms: 10})\n\
     ;(await fixture.add({a: n, b: 21})).sum",
];

/// Kills `count` workers and zygotes under load, one after the other, and reports how the server recovers. `seed`
/// determines the random choices.
pub(crate) async fn kills(count: usize, seed: u64) -> Report {
    let mut report = Report::new(format!("kills, {} clients", 2 * CLIENTS));
    let server = Server::start_with_wire_kept().await;
    let run = Run::default();
    tokio::join!(run.load(&server, 0), run.load(&server, 1), run.kill_all(server.pid, count, seed));
    let state = run.state.into_inner();
    report.figure("kills", state.kills as f64, "");
    report.figure("of these of zygotes", state.zygotes as f64, "");
    state.judge(&mut report, count);
    report.promise(
        Kind::Count,
        "nothing is left but idle workers, and no zombie",
        server.settled().await.map(drop),
    );
    let requests = server.client.requests();
    let wire = server.close(&mut report).await;
    let name = "the server wrote one answer to each request, and no second one";
    report.promise(Kind::Count, name, equal(answers_by_request(&wire), (requests, 0)));
    report
}

#[derive(Default)]
struct Run {
    state: RefCell<State>,
    recovered: Notify,
}

#[derive(Default)]
struct State {
    kills: usize,
    zygotes: usize,
    is_over: bool,
    sent: usize,
    answers: usize,
    by_status: BTreeMap<String, usize>,
    unexpected: Vec<String>,
    /// The most recent kill, as long as the server has not recovered from it: no program that was sent after the kill
    /// has succeeded. Otherwise `None`.
    pending: Option<Kill>,
    worker_ms: Vec<f64>,
    zygote_ms: Vec<f64>,
    stuck: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
struct Kill {
    language: &'static str,
    is_zygote: bool,
    at: Instant,
}

impl Run {
    async fn load(&self, server: &Server, language: usize) {
        let programs = || {
            let mut state = self.state.borrow_mut();
            if state.is_over {
                return None;
            }
            state.sent += 1;
            let (number, code) = (state.sent, PROGRAMS[language].to_owned());
            Some(Program { number, language: LANGUAGES[language], code, timeout: None })
        };
        server
            .client
            .load(CLIENTS, programs, |answered| {
                if self.state.borrow_mut().add(&answered) {
                    self.recovered.notify_one();
                }
            })
            .await;
    }

    async fn kill_all(&self, server: u32, count: usize, seed: u64) {
        let mut random = Random(seed);
        let mut progress = Progress::new("kills", count);
        while self.state.borrow().kills < count {
            let Some((victim, is_zygote)) = victim(server, &mut random) else {
                tokio::time::sleep(Duration::from_millis(1)).await;
                continue;
            };
            // Recorded before the signal is sent, because its effect may be observed at once.
            let language = leftover_resources::language(&victim);
            self.state.borrow_mut().pending = Some(Kill { language, is_zygote, at: Instant::now() });
            if kill(Pid::from_raw(victim.pid as i32), Signal::SIGKILL).is_err() {
                // The process had exited already, so nothing was killed.
                self.state.borrow_mut().pending = None;
                continue;
            }
            progress.step();
            self.state.borrow_mut().killed(is_zygote);
            if tokio::time::timeout(WAIT_TIMEOUT, self.recovered.notified()).await.is_err() {
                let mut state = self.state.borrow_mut();
                let reported = format!("{:?}", state.pending.take());
                state.stuck.push(reported);
            }
            let pause = Duration::from_millis(random.below(PAUSE_MS_MAX));
            tokio::time::sleep(pause).await; // So that kills meet every moment of a run.
        }
        self.state.borrow_mut().is_over = true;
    }
}

fn victim(server: u32, random: &mut Random) -> Option<(Process, bool)> {
    let zygotes = leftover_resources::zygotes(server);
    let is_zygote = random.below(KILLS_PER_ZYGOTE) == 0;
    let mut among = match is_zygote {
        true => zygotes,
        false => zygotes.iter().flat_map(|zygote| children(zygote.pid)).collect(),
    };
    let which = random.below(among.len().max(1) as u64) as usize;
    (which < among.len()).then(|| (among.swap_remove(which), is_zygote))
}

impl State {
    fn killed(&mut self, is_zygote: bool) {
        self.kills += 1;
        self.zygotes += usize::from(is_zygote);
    }

    /// Records an answer. Returns whether it shows the recovery from the most recent kill: it is the first success of a
    /// program in the same language that was sent after the kill.
    fn add(&mut self, answered: &ProgramAnswer) -> bool {
        self.answers += usize::from(answered.answer.is_ok());
        *self.by_status.entry(answered.text("/status").to_owned()).or_default() += 1;
        let is_right = answered.is_ok() && answered.answer.as_ref().is_ok_and(|answer| answer["value"] == 42);
        let message = answered.text("/error/message");
        let says_killed = message.contains("(SIGKILL)") || message.contains("zygote exited");
        let is_reported = answered.text("/status") == "killed" && says_killed;
        if !is_right && !is_reported {
            self.unexpected.push(answered.to_text());
        }
        let waited_for =
            |kill: &mut Kill| kill.language == answered.program.language && kill.at <= answered.sent;
        match self.pending.take_if(|kill| is_right && waited_for(kill)) {
            Some(kill) => {
                let times = if kill.is_zygote { &mut self.zygote_ms } else { &mut self.worker_ms };
                times.push(millis((answered.sent + answered.took) - kill.at));
                true
            }
            None => false,
        }
    }

    fn judge(&self, report: &mut Report, count: usize) {
        let statuses: Vec<String> =
            self.by_status.iter().map(|(status, count)| format!("{status} {count}")).collect();
        report.remarked("requests", self.sent as f64, "", statuses.join(", "));
        report.promise(Kind::Count, "each request has an answer", equal(self.answers, self.sent));
        let reported: Vec<&String> = self.unexpected.iter().take(REPORTED_MAX).collect();
        let name = "each answer is right, or says that its worker or zygote was killed";
        report.promise(Kind::Count, name, ensure(reported.is_empty(), (self.unexpected.len(), reported)));
        let killed = self.by_status.get("killed").copied().unwrap_or(0);
        report.promise(Kind::Count, "control: kills met running programs", ensure(killed > 0, killed));
        let found = (self.kills, self.stuck.first());
        report.promise(Kind::Count, "after each kill a program goes well", equal(found, (count, None)));
        let [.., worker] = report.times("a worker killed, to the next success", self.worker_ms.clone());
        let [.., zygote] = report.times("a zygote killed, to the next success", self.zygote_ms.clone());
        let name = format!("the next success within {} s", RECOVERS_WITHIN.as_secs());
        let slowest = worker.max(zygote);
        report.promise(Kind::Measure, name, ensure(slowest < millis(RECOVERS_WITHIN), slowest));
    }
}

/// A pseudo-random number generator (xorshift64) with a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
