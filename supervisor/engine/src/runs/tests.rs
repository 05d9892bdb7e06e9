use super::*;
use lockhouse_base::principal::owner_of_name;
use lockhouse_messages::RunAnswer;
use lockhouse_policies::Rate;
use lockhouse_protocol::Language;
use lockhouse_run_channel::{OpenQuestions, ProgressRequests, progress_channel};
use lockhouse_stores::results::ResultLimits;
use tokio::sync::{mpsc, oneshot};

fn runs() -> Runs {
    let settings = BackgroundRunSettings {
        wait: Duration::ZERO,
        background: 3,
        background_per_client: 2,
        abandoned: Duration::ZERO,
    };
    let rate = Rate::parse("100/h").expect("a rate");
    let limits = ClientLimits { requests: rate, runs: rate, running: 1, waiting: 0, sessions: 1 };
    let results = ResultLimits { bytes: 1 << 20, lifetime: Duration::from_mins(1) };
    Runs::new(settings, limits, Arc::new(Results::in_memory(results)))
}

fn active_run() -> ActiveRun {
    ActiveRun {
        owner: Owner::LOCAL,
        client: None,
        language: Language::Python,
        session: None,
        requested_at: Instant::now(),
        started: ProgressRequests::default().started_flag(),
        questions: OpenQuestions::default(),
        stop: StopHandle::new(&CancellationToken::new(), Cancellation::Client),
        worker: None,
    }
}

/// Starts a run that ends when its sender is used or dropped.
fn start(runs: &Runs, owner: Owner, number: u128) -> (RunHandle, oneshot::Sender<()>) {
    let (end, ended) = oneshot::channel();
    let (_, messages) = mpsc::channel(1);
    let (progress_handle, _) = progress_channel();
    let follower = RunFollower { execution: ExecutionId(number), messages, progress_handle };
    let run = runs.start(owner, follower, CancellationToken::new(), async move {
        let _ = ended.await;
        RenderedAnswer { answer: RunAnswer::without_run("Busy", "for a test"), files: Vec::new() }
    });
    (run, end)
}

#[test]
fn an_active_run_is_listed_and_counts_towards_its_quota_until_its_answer() {
    let (runs, owner) = (runs(), owner_of_name("a"));
    let mut first = runs.register(ExecutionId(1), active_run());
    assert!(first.admit(owner).is_ok());
    let mut second = runs.register(ExecutionId(2), active_run());
    assert!(second.admit(owner).is_err());
    drop(second);
    let listed: Vec<String> = runs.list().into_iter().map(|run| run.execution).collect();
    assert_eq!(listed, [ExecutionId(1).to_string()]);
    assert_eq!(runs.end(None, &Cancellation::Person), listed);
    drop(first);
    assert!(runs.list().is_empty());
    assert!(runs.register(ExecutionId(3), active_run()).admit(owner).is_ok());
}

#[tokio::test]
async fn background_runs_are_bounded_and_their_answers_are_found_by_their_owner_alone() {
    let (runs, one, other) = (runs(), owner_of_name("one"), owner_of_name("other"));
    let started: Vec<_> =
        (0..6).map(|number| start(&runs, if number < 3 { one } else { other }, number)).collect();
    let kept: Vec<Option<ResultHandle>> = started.iter().map(|(run, _)| runs.keep(run)).collect();
    let is_kept: Vec<bool> = kept.iter().map(Option::is_some).collect();
    assert_eq!(is_kept, [true, true, false, true, false, false], "two of each client, three of all");
    assert_eq!(runs.keep(&started[0].0), kept[0], "a run has one handle");
    let name = RunReference::Handle(kept[0].clone().expect("a handle"));
    assert!(matches!(runs.find(one, &name), Some(RunLookup::Live(_))));
    assert!(runs.find(other, &name).is_none());
    drop(started);
    while !matches!(runs.find(one, &name), Some(RunLookup::Ended(_))) {
        tokio::task::yield_now().await;
    }
    assert!(runs.find(other, &name).is_none());
}

#[tokio::test]
async fn a_repeated_request_gets_the_run_that_it_started() {
    let (runs, owner) = (runs(), owner_of_name("a"));
    let id = RequestId::parse(&"1".repeat(32)).expect("an id");
    let digest = Some([1; 32]);
    assert!(matches!(runs.admit(owner, id, digest), Admission::New));
    assert!(matches!(runs.admit(owner, id, digest), Admission::Refused(_)), "it has started no run");
    let (run, end) = start(&runs, owner, 1);
    runs.set_run_of(owner, id, &run, true);
    assert!(matches!(runs.admit(owner, id, digest), Admission::Run(RunLookup::Live(_))));
    let finished = run.finished();
    drop((run, end));
    finished.await.expect("an answer");
    assert!(matches!(runs.admit(owner, id, digest), Admission::Run(_)));
    assert!(matches!(runs.admit(owner, id, Some([2; 32])), Admission::Refused(_)));
}
