//! Tests of the session registry with simulated times.

use super::super::SessionName;
use super::*;
use lockhouse_base::principal::owner_of_name;

const SETTINGS: SessionSettings = SessionSettings {
    max: 3,
    per_client: 2,
    idle_timeout: Duration::from_secs(60),
    max_age: Duration::from_secs(600),
};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn key(owner: &str, name: &str) -> SessionKey {
    SessionKey { owner: owner_of_name(owner), name: SessionName::new(name).expect("a name") }
}

/// Returns an empty registry, in which strings take the place of workers, and the start time.
fn sessions() -> (Registry<&'static str>, Instant) {
    (Registry::new(SETTINGS), Instant::now())
}

fn acquire(
    state: &mut Registry<&'static str>,
    key: &SessionKey,
    now: Instant,
) -> Result<Acquisition<&'static str>, SessionError> {
    state.acquire(key, Language::Python, "someone", now)
}

fn granted(state: &mut Registry<&'static str>, key: &SessionKey, now: Instant) -> WorkerGrant<&'static str> {
    match acquire(state, key, now) {
        Ok(Acquisition::Granted(grant)) => grant,
        other => panic!("no turn now: {other:?}"),
    }
}

fn waits(
    state: &mut Registry<&'static str>,
    key: &SessionKey,
    now: Instant,
) -> oneshot::Receiver<GrantResult<&'static str>> {
    match acquire(state, key, now) {
        Ok(Acquisition::Queued(granted)) => granted,
        other => panic!("no turn later: {other:?}"),
    }
}

/// Starts a session and gives its worker back, so that the session is idle. Returns the number of the session.
fn rest(state: &mut Registry<&'static str>, key: &SessionKey, now: Instant) -> u64 {
    let number = granted(state, key, now).number;
    assert_eq!(give_back(state, key, number, Some("worker"), now), None);
    number
}

fn give_back(
    state: &mut Registry<&'static str>,
    key: &SessionKey,
    number: u64,
    worker: Option<&'static str>,
    now: Instant,
) -> Option<String> {
    state.give_back(key, number, worker, || "its run failed with an internal error".to_owned(), now)
}

fn names(state: &Registry<&'static str>, now: Instant) -> Vec<String> {
    state.list(now).into_iter().map(|session| format!("{} {}", session.name, session.state)).collect()
}

#[test]
fn runs_of_a_session_use_its_worker_one_after_another() {
    let ((mut state, now), key) = (sessions(), key("a", "s"));
    let first = granted(&mut state, &key, now);
    assert_eq!((first.worker, first.runs), (None, 1));
    let [mut second, third, mut fourth] = [(); 3].map(|()| waits(&mut state, &key, now));
    assert_eq!(give_back(&mut state, &key, first.number, Some("worker"), now), None);
    let second = second.try_recv().expect("its turn").expect("a grant");
    assert_eq!((second.worker, second.runs), (Some("worker"), 2));
    // A run that no longer waits is skipped and not counted.
    drop(third);
    assert!(fourth.try_recv().is_err());
    assert_eq!(give_back(&mut state, &key, second.number, Some("worker"), now), None);
    let fourth = fourth.try_recv().expect("its turn").expect("a grant");
    assert_eq!((fourth.worker, fourth.runs), (Some("worker"), 3));
    assert_eq!(names(&state, now), ["s running"]);
    assert_eq!(give_back(&mut state, &key, fourth.number, Some("worker"), now), None);
    assert_eq!(names(&state, now), ["s idle"]);
}

#[test]
fn the_queue_of_a_session_is_bounded() {
    let ((mut state, now), key) = (sessions(), key("a", "s"));
    let _first = granted(&mut state, &key, now);
    let mut waiting: Vec<_> = (0..WAITING_MAX).map(|_| waits(&mut state, &key, now)).collect();
    assert!(matches!(acquire(&mut state, &key, now), Err(SessionError::Busy(name)) if name == "s"));
    waiting.pop();
    waits(&mut state, &key, now);
}

#[test]
fn a_session_has_one_language() {
    let ((mut state, now), key) = (sessions(), key("a", "s"));
    rest(&mut state, &key, now);
    let other = state.acquire(&key, Language::Typescript, "someone", now);
    assert!(
        matches!(other, Err(SessionError::WrongLanguage { language: "python", requested: "typescript", .. })),
        "{other:?}"
    );
}

#[test]
fn sessions_are_limited_per_client_and_other_clients_sessions_are_not_named() {
    let (mut state, now) = sessions();
    let later = now + seconds(5);
    rest(&mut state, &key("a", "one"), now);
    let _running = granted(&mut state, &key("a", "two"), now);
    let share = acquire(&mut state, &key("a", "three"), later).expect_err("its share is used");
    let open = "one (idle for 5 s), two (running)".to_owned();
    assert_eq!(share, SessionError::ClientLimit { max: 2, open });
    // Two AI clients can use the same session name for two sessions.
    rest(&mut state, &key("b", "one"), now);
    let full = acquire(&mut state, &key("b", "two"), later).expect_err("there is no more room");
    let open = "one (idle for 5 s), sessions of other clients".to_owned();
    assert_eq!(full, SessionError::TooMany { max: 3, open });
}

#[test]
fn sessions_expire() {
    let (too_old, unused) = ("it reached the maximum age of 600 s", "it was not used for 60 s");
    let ((mut state, now), key) = (sessions(), key("a", "s"));
    assert_eq!(state.end_expired(now), None, "there is none");
    let number = rest(&mut state, &key, now);
    assert_eq!(state.end_expired(now), Some(now + seconds(60)));
    // A session with an active run does not expire.
    let run = granted(&mut state, &key, now + seconds(59));
    assert_eq!(state.end_expired(now + seconds(70)), None);
    assert_eq!(give_back(&mut state, &key, number, run.worker, now + seconds(580)), None);
    assert_eq!(state.end_expired(now + seconds(580)), Some(now + seconds(600)), "its life is over first");
    assert_eq!(state.end_expired(now + seconds(600)), None);
    let why = |state: &mut Registry<&'static str>, now| match acquire(state, &key, now) {
        Err(SessionError::Ended { why, .. }) => why,
        other => panic!("it has not ended: {other:?}"),
    };
    assert_eq!(why(&mut state, now + seconds(600)), too_old);
    // The reason is reported once. The next run starts a new session.
    let number = rest(&mut state, &key, now + seconds(601));
    assert_eq!(state.end_expired(now + seconds(661)), None);
    assert_eq!(why(&mut state, now + seconds(661)), unused);
    let number = (number, rest(&mut state, &key, now)).1;
    // When a session reaches its maximum age during a run, the run completes and the session ends after it.
    let run = granted(&mut state, &key, now);
    let ended = give_back(&mut state, &key, number, run.worker, now + seconds(600));
    assert_eq!(ended.as_deref(), Some(too_old));
}

#[test]
fn the_end_of_a_session_is_reported_once() {
    let ((mut state, now), key) = (sessions(), key("a", "s"));
    // The reason goes to the runs that wait, or else to the next run.
    let run = granted(&mut state, &key, now);
    let mut waiting = waits(&mut state, &key, now);
    assert_eq!(
        give_back(&mut state, &key, run.number, None, now).as_deref(),
        Some("its run failed with an internal error")
    );
    assert!(
        matches!(waiting.try_recv(), Ok(Err(SessionError::Ended { why, .. })) if why == "its run failed with an internal error")
    );
    let run = granted(&mut state, &key, now);
    give_back(&mut state, &key, run.number, None, now);
    assert!(matches!(acquire(&mut state, &key, now), Err(SessionError::Ended { .. })));
    // No client gets a reason for a session that could not be started.
    let run = granted(&mut state, &key, now);
    state.abandon(&key, run.number, "no worker");
    assert_eq!(granted(&mut state, &key, now).runs, 1);
}

#[test]
fn unreported_ends_are_bounded() {
    let (mut state, now) = sessions();
    for number in 0..=UNREPORTED_ENDS_MAX {
        let key = key("a", &number.to_string());
        let run = granted(&mut state, &key, now);
        give_back(&mut state, &key, run.number, None, now);
    }
    assert_eq!(state.unreported_ends.len(), UNREPORTED_ENDS_MAX);
    assert_eq!(granted(&mut state, &key("a", "0"), now).runs, 1, "the oldest is forgotten");
}

#[test]
fn an_operator_ends_sessions_and_their_active_runs() {
    let (mut state, now) = sessions();
    let resting = key("a", "s");
    let number = rest(&mut state, &resting, now);
    rest(&mut state, &key("b", "s"), now);
    assert_eq!(state.end(SessionSelector::Named("s"), "a person"), Err(2), "it is not clear which");
    assert_eq!(state.end(SessionSelector::Named("t"), "a person"), Ok(vec![]));
    assert_eq!(state.end(SessionSelector::Numbered(number), "a person"), Ok(vec!["s".to_owned()]));
    assert_eq!(names(&state, now), ["s idle"]);
    // The active run is stopped, and its worker is not used again.
    let running = key("b", "s");
    let run = granted(&mut state, &running, now);
    assert_eq!(state.end(SessionSelector::All, "a person"), Ok(vec!["s".to_owned()]));
    assert!(run.stop.is_cancelled());
    assert_eq!(names(&state, now), ["s running"]);
    assert_eq!(give_back(&mut state, &running, run.number, run.worker, now).as_deref(), Some("a person"));
    assert_eq!(names(&state, now), Vec::<String>::new());
}

#[test]
fn a_session_whose_worker_was_killed_has_ended() {
    let (mut state, now) = sessions();
    rest(&mut state, &key("a", "s"), now);
    let _running = granted(&mut state, &key("a", "t"), now);
    state.end_killed(|worker| *worker == "worker");
    assert_eq!(state.list(now).len(), 2);
    state.end_killed(|_| false);
    assert_eq!(names(&state, now), ["t running"]);
}

#[test]
fn no_session_starts_after_close() {
    let ((mut state, now), key) = (sessions(), key("a", "s"));
    rest(&mut state, &key, now);
    state.close();
    assert!(matches!(acquire(&mut state, &key, now), Err(SessionError::Closed)));
    assert!(state.list(now).is_empty());
}

#[test]
fn a_run_of_an_earlier_session_does_not_affect_a_new_one_with_the_same_name() {
    let ((mut state, now), key) = (sessions(), key("a", "s"));
    let number = rest(&mut state, &key, now);
    state.end_killed(|_| false);
    assert!(matches!(acquire(&mut state, &key, now), Err(SessionError::Ended { .. })));
    rest(&mut state, &key, now);
    assert_eq!(give_back(&mut state, &key, number, None, now), None);
    state.abandon(&key, number, "no worker");
    assert_eq!(names(&state, now), ["s idle"]);
}
