use super::Effect::{
    AwaitDemand, Connect, Disconnect, Drain, Finish, ListTools, Ping, PublishConnecting, PublishIdle,
};
use super::*;

const ANSWERED: Event = Event::Disconnected { has_answered: true };
const UNANSWERED: Event = Event::Disconnected { has_answered: false };
const REFUSED: Event = Event::Refused { is_excess: false };
const REFUSED_FOR_EXCESS: Event = Event::Refused { is_excess: true };

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn about(pause: f64) -> Vec<Effect> {
    vec![Effect::Pause(Pause::About(seconds(pause)))]
}

fn exactly(pause: f64) -> Vec<Effect> {
    vec![Effect::Pause(Pause::Exactly(seconds(pause)))]
}

fn reason(is_excess: bool) -> Option<Reason> {
    Some(Reason { words: "it failed".into(), is_excess })
}

fn lost(is_excess: bool) -> (Event, Vec<Effect>) {
    let over = Over::Lost(reason(is_excess));
    (Event::Lost(reason(is_excess)), vec![PublishConnecting, Disconnect(over)])
}

/// A life as rows: the seconds since the row before, what happens then, and what that must lead to.
fn check(name: &str, is_lazy: bool, rows: Vec<(f64, Event, Vec<Effect>)>) {
    let mut now = Instant::now();
    let (mut lifecycle, first) = Lifecycle::begin(is_lazy, now);
    assert_eq!(first, [if is_lazy { AwaitDemand } else { Connect }], "{name}");
    for (number, (after, event, expected)) in rows.into_iter().enumerate() {
        now += seconds(after);
        let what = format!("{name}, row {number}: {event:?}");
        assert_eq!(lifecycle.on(event, now), expected, "{what}");
    }
}

/// The same with a server that starts at once.
fn check_started(name: &str, rows: Vec<(f64, Event, Vec<Effect>)>) {
    let started = [(0.0, Event::Connected, vec![])];
    check(name, false, started.into_iter().chain(rows).collect());
}

#[test]
fn a_server_is_started_when_it_is_needed_and_stopped_when_it_is_not() {
    check(
        "a lazy server",
        true,
        vec![
            (9.0, Event::Wanted, vec![PublishConnecting, Connect]),
            (1.0, Event::Connected, vec![]),
            (9.0, Event::IdleLimit, vec![PublishIdle, Disconnect(Over::Idle)]),
            (1.0, ANSWERED, vec![AwaitDemand]),
            (9.0, Event::Wanted, vec![PublishConnecting, Connect]),
            (1.0, REFUSED, about(0.1)),
            (0.1, Event::PauseOver, vec![Connect]),
            (1.0, Event::CloseRequested, vec![Finish]),
        ],
    );
}

#[test]
fn whenever_it_is_closed_the_task_ends_and_a_connection_ends_first() {
    check("before it is needed", true, vec![(1.0, Event::CloseRequested, vec![Finish])]);
    check("while it starts", false, vec![(1.0, Event::CloseRequested, vec![Finish])]);
    check(
        "while it pauses",
        false,
        vec![(1.0, REFUSED, about(0.1)), (0.0, Event::CloseRequested, vec![Finish])],
    );
    check_started(
        "while it is connected",
        vec![
            (1.0, Event::CloseRequested, vec![Drain]),
            (0.0, Event::IdleLimit, vec![]),
            (1.0, Event::Drained, vec![PublishConnecting, Disconnect(Over::Closing)]),
            (1.0, UNANSWERED, vec![Finish]),
            (0.0, Event::Wanted, vec![]),
        ],
    );
}

#[test]
fn a_server_that_fails_again_and_again_is_started_less_and_less_often() {
    let pauses = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0];
    let refusals =
        pauses.map(|pause| [(1.0, REFUSED, about(pause)), (pause, Event::PauseOver, vec![Connect])]);
    check("never starts", false, refusals.into_iter().flatten().collect());

    // How long the connection lasts, whether it answers a call, and the pause after it.
    let mut rows = Vec::new();
    for (lasts, ended, pause) in [
        (1.0, UNANSWERED, 0.1),
        (1.0, UNANSWERED, 0.2),
        (59.0, UNANSWERED, 0.4),
        (1.0, ANSWERED, 0.1),
        (1.0, UNANSWERED, 0.2),
        (60.0, UNANSWERED, 0.1),
        (1.0, UNANSWERED, 0.2),
    ] {
        let (event, effects) = lost(false);
        rows.push((lasts, event, effects));
        rows.push((0.0, ended, about(pause)));
        rows.push((pause, Event::PauseOver, vec![Connect]));
        rows.push((0.0, Event::Connected, vec![]));
    }
    check_started("is lost", rows);
}

#[test]
fn a_server_that_sent_too_much_waits_for_long_whatever_it_answered() {
    let mut rows = Vec::new();
    for (lasts, pause) in [(1.0, 10.0), (61.0, 20.0), (600.0, 40.0), (1.0, 80.0), (601.0, 10.0), (1.0, 20.0)]
    {
        let (event, effects) = lost(true);
        rows.push((lasts, event, effects));
        rows.push((0.0, ANSWERED, exactly(pause)));
        rows.push((pause, Event::PauseOver, vec![Connect]));
        rows.push((0.0, Event::Connected, vec![]));
    }
    check_started("sends too much", rows);

    let pauses = [10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 600.0, 600.0];
    let refusals = pauses
        .map(|pause| [(1.0, REFUSED_FOR_EXCESS, exactly(pause)), (pause, Event::PauseOver, vec![Connect])]);
    let after = [(1.0, REFUSED, about(0.1))];
    check("sends too much while it starts", false, refusals.into_iter().flatten().chain(after).collect());
}

#[test]
fn tools_are_listed_less_often_the_more_often_they_change() {
    let mut rows = Vec::new();
    for (calm, pause) in
        [(0.0, 1.0), (0.0, 2.0), (0.0, 4.0), (0.0, 8.0), (0.0, 16.0), (0.0, 32.0), (0.0, 60.0), (0.0, 60.0)]
    {
        rows.push((calm, Event::ToolsChanged, vec![ListTools(seconds(pause))]));
        rows.push((pause, Event::ToolsListed, vec![]));
    }
    // The first change after a long time is looked at when those before have taught, the one after it at once.
    rows.push((61.0, Event::ToolsChanged, vec![ListTools(seconds(60.0))]));
    rows.push((60.0, Event::ToolsListed, vec![]));
    rows.push((0.0, Event::ToolsChanged, vec![ListTools(seconds(1.0))]));
    let (event, effects) = lost(false);
    rows.push((0.0, event, effects));
    check_started("tools that change", rows);
}

#[test]
fn a_call_that_times_out_asks_the_server_whether_it_answers_at_all() {
    check_started(
        "a call that timed out",
        vec![(1.0, Event::CallTimedOut, vec![Ping]), (0.0, Event::Lost(None), lost_without_reason())],
    );
}

fn lost_without_reason() -> Vec<Effect> {
    vec![PublishConnecting, Disconnect(Over::Lost(None))]
}

/// Whatever comes when it has no meaning.
#[test]
fn an_event_of_another_phase_leads_to_nothing() {
    for event in [Event::Connected, Event::Drained, UNANSWERED, Event::PauseOver, Event::Lost(None)] {
        check("before it is needed", true, vec![(1.0, event, vec![])]);
    }
    for event in [Event::Wanted, Event::Drained, UNANSWERED, Event::PauseOver, Event::IdleLimit] {
        check("while it starts", false, vec![(1.0, event, vec![])]);
    }
    for event in [Event::Wanted, Event::Drained, UNANSWERED, Event::PauseOver, Event::Connected] {
        check_started("while it is connected", vec![(1.0, event, vec![])]);
    }
}
