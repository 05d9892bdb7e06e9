//! Turns and ends of sessions, at times that the tests choose.

use super::super::SessionName;
use super::*;

const SETTINGS: SessionSettings =
    SessionSettings { max: 3, of_a_client: 2, idle: Duration::from_secs(60), life: Duration::from_secs(600) };

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn key(owner: &str, name: &str) -> SessionKey {
    SessionKey { owner: Owner::of_name(owner), name: SessionName::new(name).expect("a name") }
}

/// Sessions whose workers are names, and the time at which they begin.
fn sessions() -> (State<&'static str>, Instant) {
    (State::new(SETTINGS), Instant::now())
}

fn turn(
    state: &mut State<&'static str>,
    key: &SessionKey,
    now: Instant,
) -> Result<Next<&'static str>, NoTurn> {
    state.turn(key, Language::Python, "someone", now)
}

fn granted(state: &mut State<&'static str>, key: &SessionKey, now: Instant) -> Grant<&'static str> {
    match turn(state, key, now) {
        Ok(Next::Now(grant)) => grant,
        other => panic!("no turn now: {other:?}"),
    }
}

fn waits(
    state: &mut State<&'static str>,
    key: &SessionKey,
    now: Instant,
) -> oneshot::Receiver<Granted<&'static str>> {
    match turn(state, key, now) {
        Ok(Next::Later(granted)) => granted,
        other => panic!("no turn later: {other:?}"),
    }
}

/// Begins a session whose worker rests.
fn rest(state: &mut State<&'static str>, key: &SessionKey, now: Instant) -> u64 {
    let number = granted(state, key, now).number;
    assert_eq!(give_back(state, key, number, Some("worker"), now), None);
    number
}

fn give_back(
    state: &mut State<&'static str>,
    key: &SessionKey,
    number: u64,
    worker: Option<&'static str>,
    now: Instant,
) -> Option<String> {
    state.give_back(key, number, worker, || "its run broke".to_owned(), now)
}

fn names(state: &State<&'static str>, now: Instant) -> Vec<String> {
    state.list(now).into_iter().map(|session| format!("{} {}", session.name, session.state)).collect()
}

#[test]
fn runs_of_a_session_have_its_worker_in_turn() {
    let ((mut state, now), key) = (sessions(), key("a", "s"));
    let first = granted(&mut state, &key, now);
    assert_eq!((first.worker, first.runs), (None, 1));
    let [mut second, third, mut fourth] = [(); 3].map(|()| waits(&mut state, &key, now));
    assert_eq!(give_back(&mut state, &key, first.number, Some("worker"), now), None);
    let second = second.try_recv().expect("its turn").expect("a grant");
    assert_eq!((second.worker, second.runs), (Some("worker"), 2));
    // Who waits no more is passed over, and is no run of the session.
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
fn so_many_runs_wait_and_no_more() {
    let ((mut state, now), key) = (sessions(), key("a", "s"));
    let _first = granted(&mut state, &key, now);
    let mut waiting: Vec<_> = (0..WAITING_MAX).map(|_| waits(&mut state, &key, now)).collect();
    assert!(matches!(turn(&mut state, &key, now), Err(NoTurn::Busy(name)) if name == "s"));
    waiting.pop();
    waits(&mut state, &key, now);
}

#[test]
fn a_session_has_one_language() {
    let ((mut state, now), key) = (sessions(), key("a", "s"));
    rest(&mut state, &key, now);
    let other = state.turn(&key, Language::Typescript, "someone", now);
    assert!(
        matches!(other, Err(NoTurn::OtherLanguage { is: "python", asked: "typescript", .. })),
        "{other:?}"
    );
}

#[test]
fn each_client_has_its_share_and_hears_of_others_only_that_they_are_there() {
    let (mut state, now) = sessions();
    let later = now + seconds(5);
    rest(&mut state, &key("a", "one"), now);
    let _running = granted(&mut state, &key("a", "two"), now);
    let share = turn(&mut state, &key("a", "three"), later).expect_err("its share is used");
    let open = "one (idle for 5 s), two (running)".to_owned();
    assert_eq!(share, NoTurn::Share { max: 2, open });
    // The same name of another client is another session.
    rest(&mut state, &key("b", "one"), now);
    let full = turn(&mut state, &key("b", "two"), later).expect_err("there is no more room");
    let open = "one (idle for 5 s), those of other clients".to_owned();
    assert_eq!(full, NoTurn::TooMany { max: 3, open });
}

#[test]
fn sessions_end_in_time() {
    let (too_old, unused) = ("it was 600 s old, and a session gets no older", "nobody had used it for 60 s");
    let ((mut state, now), key) = (sessions(), key("a", "s"));
    assert_eq!(state.end_the_overdue(now), None, "there is none");
    let number = rest(&mut state, &key, now);
    assert_eq!(state.end_the_overdue(now), Some(now + seconds(60)));
    // What runs is not ended, and has been used.
    let run = granted(&mut state, &key, now + seconds(59));
    assert_eq!(state.end_the_overdue(now + seconds(70)), None);
    assert_eq!(give_back(&mut state, &key, number, run.worker, now + seconds(580)), None);
    assert_eq!(state.end_the_overdue(now + seconds(580)), Some(now + seconds(600)), "its life is over first");
    assert_eq!(state.end_the_overdue(now + seconds(600)), None);
    let why = |state: &mut State<&'static str>, now| match turn(state, &key, now) {
        Err(NoTurn::Ended { why, .. }) => why,
        other => panic!("it has not ended: {other:?}"),
    };
    assert_eq!(why(&mut state, now + seconds(600)), too_old);
    // That is said once, and the next run begins a new session.
    let number = rest(&mut state, &key, now + seconds(601));
    assert_eq!(state.end_the_overdue(now + seconds(661)), None);
    assert_eq!(why(&mut state, now + seconds(661)), unused);
    let number = (number, rest(&mut state, &key, now)).1;
    // A run that is under way when its session is too old comes to its end, and the session with it.
    let run = granted(&mut state, &key, now);
    let ended = give_back(&mut state, &key, number, run.worker, now + seconds(600));
    assert_eq!(ended.as_deref(), Some(too_old));
}

#[test]
fn the_end_of_a_session_is_told_once() {
    let ((mut state, now), key) = (sessions(), key("a", "s"));
    // To those who wait for it, or else to whoever asks next.
    let run = granted(&mut state, &key, now);
    let mut waiting = waits(&mut state, &key, now);
    assert_eq!(give_back(&mut state, &key, run.number, None, now).as_deref(), Some("its run broke"));
    assert!(matches!(waiting.try_recv(), Ok(Err(NoTurn::Ended { why, .. })) if why == "its run broke"));
    let run = granted(&mut state, &key, now);
    give_back(&mut state, &key, run.number, None, now);
    assert!(matches!(turn(&mut state, &key, now), Err(NoTurn::Ended { .. })));
    // One that could not begin is told to nobody.
    let run = granted(&mut state, &key, now);
    state.never_began(&key, run.number, "no worker");
    assert_eq!(granted(&mut state, &key, now).runs, 1);
}

#[test]
fn ends_that_nobody_is_told_of_are_bounded() {
    let (mut state, now) = sessions();
    for number in 0..=UNTOLD_MAX {
        let key = key("a", &number.to_string());
        let run = granted(&mut state, &key, now);
        give_back(&mut state, &key, run.number, None, now);
    }
    assert_eq!(state.untold.len(), UNTOLD_MAX);
    assert_eq!(granted(&mut state, &key("a", "0"), now).runs, 1, "the oldest is forgotten");
}

#[test]
fn a_person_ends_sessions_and_what_runs_in_them() {
    let (mut state, now) = sessions();
    let resting = key("a", "s");
    let number = rest(&mut state, &resting, now);
    rest(&mut state, &key("b", "s"), now);
    assert_eq!(state.end(Which::Named("s"), "a person"), Err(2), "it is not clear which");
    assert_eq!(state.end(Which::Named("t"), "a person"), Ok(vec![]));
    assert_eq!(state.end(Which::Numbered(number), "a person"), Ok(vec!["s".to_owned()]));
    assert_eq!(names(&state, now), ["s idle"]);
    // What runs is stopped, and whether its worker could go on does not count.
    let running = key("b", "s");
    let run = granted(&mut state, &running, now);
    assert_eq!(state.end(Which::All, "a person"), Ok(vec!["s".to_owned()]));
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
    state.end_the_dead(|worker| *worker == "worker");
    assert_eq!(state.list(now).len(), 2);
    state.end_the_dead(|_| false);
    assert_eq!(names(&state, now), ["t running"]);
}

#[test]
fn after_the_end_of_all_none_begins() {
    let ((mut state, now), key) = (sessions(), key("a", "s"));
    rest(&mut state, &key, now);
    state.close();
    assert!(matches!(turn(&mut state, &key, now), Err(NoTurn::Closed)));
    assert!(state.list(now).is_empty());
}

#[test]
fn a_run_of_a_session_before_changes_nothing_in_the_one_of_the_same_name() {
    let ((mut state, now), key) = (sessions(), key("a", "s"));
    let number = rest(&mut state, &key, now);
    state.end_the_dead(|_| false);
    assert!(matches!(turn(&mut state, &key, now), Err(NoTurn::Ended { .. })));
    rest(&mut state, &key, now);
    assert_eq!(give_back(&mut state, &key, number, None, now), None);
    state.never_began(&key, number, "no worker");
    assert_eq!(names(&state, now), ["s idle"]);
}
