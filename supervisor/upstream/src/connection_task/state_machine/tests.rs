use super::ConnectionEffect::{
    AwaitDemand, Connect, Disconnect, Drain, Finish, ListTools, Ping, PublishConnected, PublishConnecting,
    PublishIdle, PublishUnresponsive,
};
use super::*;

const ANSWERED: ConnectionEvent = ConnectionEvent::Disconnected { has_answered: true };
const UNANSWERED: ConnectionEvent = ConnectionEvent::Disconnected { has_answered: false };
const START_FAILED: ConnectionEvent = ConnectionEvent::StartFailed { is_violation: false };
const START_VIOLATION: ConnectionEvent = ConnectionEvent::StartFailed { is_violation: true };

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn about(pause: f64) -> Vec<ConnectionEffect> {
    vec![ConnectionEffect::BackOff(RestartDelay::Jittered(seconds(pause)))]
}

fn exactly(pause: f64) -> Vec<ConnectionEffect> {
    vec![ConnectionEffect::BackOff(RestartDelay::Exactly(seconds(pause)))]
}

fn reason(is_violation: bool) -> Option<ConnectionFailure> {
    Some(ConnectionFailure { message: "it failed".into(), is_violation })
}

fn lost(is_violation: bool) -> (ConnectionEvent, Vec<ConnectionEffect>) {
    let over = EndReason::Lost(reason(is_violation));
    (ConnectionEvent::Lost(reason(is_violation)), vec![PublishConnecting, Disconnect(over)])
}

/// Checks the state machine with a sequence of events. Each row has the seconds since the previous row, the event, and
/// the expected effects. `name` identifies the sequence in failure messages.
fn check(name: &str, is_lazy: bool, rows: Vec<(f64, ConnectionEvent, Vec<ConnectionEffect>)>) {
    let mut now = Instant::now();
    let (mut machine, first) = StateMachine::new(is_lazy, now);
    assert_eq!(first, [if is_lazy { AwaitDemand } else { Connect }], "{name}");
    for (number, (after, event, expected)) in rows.into_iter().enumerate() {
        now += seconds(after);
        let what = format!("{name}, row {number}: {event:?}");
        assert_eq!(machine.handle(event, now), expected, "{what}");
    }
}

/// Checks the state machine of a server that is already connected. Each row has the seconds since the previous row, the
/// event, and the expected effects.
fn check_started(name: &str, rows: Vec<(f64, ConnectionEvent, Vec<ConnectionEffect>)>) {
    let started = [(0.0, ConnectionEvent::Connected, vec![])];
    check(name, false, started.into_iter().chain(rows).collect());
}

#[test]
fn a_server_is_started_when_it_is_needed_and_stopped_when_it_is_not() {
    check(
        "a lazy server",
        true,
        vec![
            (9.0, ConnectionEvent::Demanded, vec![PublishConnecting, Connect]),
            (1.0, ConnectionEvent::Connected, vec![]),
            (9.0, ConnectionEvent::IdleTimeout, vec![PublishIdle, Disconnect(EndReason::Idle)]),
            (1.0, ANSWERED, vec![AwaitDemand]),
            (9.0, ConnectionEvent::Demanded, vec![PublishConnecting, Connect]),
            (1.0, START_FAILED, about(0.1)),
            (0.1, ConnectionEvent::RestartDue, vec![Connect]),
            (1.0, ConnectionEvent::CloseRequested, vec![Finish]),
        ],
    );
}

#[test]
fn whenever_it_is_closed_the_task_ends_and_a_connection_ends_first() {
    check("before it is needed", true, vec![(1.0, ConnectionEvent::CloseRequested, vec![Finish])]);
    check("while it starts", false, vec![(1.0, ConnectionEvent::CloseRequested, vec![Finish])]);
    check(
        "while it pauses",
        false,
        vec![(1.0, START_FAILED, about(0.1)), (0.0, ConnectionEvent::CloseRequested, vec![Finish])],
    );
    check_started(
        "while it is connected",
        vec![
            (1.0, ConnectionEvent::CloseRequested, vec![Drain]),
            (0.0, ConnectionEvent::IdleTimeout, vec![]),
            (1.0, ConnectionEvent::Drained, vec![PublishConnecting, Disconnect(EndReason::Closing)]),
            (1.0, UNANSWERED, vec![Finish]),
            (0.0, ConnectionEvent::Demanded, vec![]),
        ],
    );
}

#[test]
fn a_server_that_fails_again_and_again_is_started_less_and_less_often() {
    let pauses = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0];
    let refusals = pauses.map(|pause| {
        [(1.0, START_FAILED, about(pause)), (pause, ConnectionEvent::RestartDue, vec![Connect])]
    });
    check("never starts", false, refusals.into_iter().flatten().collect());

    // How long the connection lasts, whether it answers a call, and the delay after it.
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
        rows.push((pause, ConnectionEvent::RestartDue, vec![Connect]));
        rows.push((0.0, ConnectionEvent::Connected, vec![]));
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
        rows.push((pause, ConnectionEvent::RestartDue, vec![Connect]));
        rows.push((0.0, ConnectionEvent::Connected, vec![]));
    }
    check_started("sends too much", rows);

    let pauses = [10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 600.0, 600.0];
    let refusals = pauses.map(|pause| {
        [(1.0, START_VIOLATION, exactly(pause)), (pause, ConnectionEvent::RestartDue, vec![Connect])]
    });
    let after = [(1.0, START_FAILED, about(0.1))];
    check("sends too much while it starts", false, refusals.into_iter().flatten().chain(after).collect());
}

#[test]
fn tools_are_listed_less_often_the_more_often_they_change() {
    let mut rows = Vec::new();
    for (calm, pause) in
        [(0.0, 1.0), (0.0, 2.0), (0.0, 4.0), (0.0, 8.0), (0.0, 16.0), (0.0, 32.0), (0.0, 60.0), (0.0, 60.0)]
    {
        rows.push((calm, ConnectionEvent::ToolsChanged, vec![ListTools(seconds(pause))]));
        rows.push((pause, ConnectionEvent::ToolsListed, vec![]));
    }
    // The first change after a calm period is listed with the old delay, the next one with the shortest.
    rows.push((61.0, ConnectionEvent::ToolsChanged, vec![ListTools(seconds(60.0))]));
    rows.push((60.0, ConnectionEvent::ToolsListed, vec![]));
    rows.push((0.0, ConnectionEvent::ToolsChanged, vec![ListTools(seconds(1.0))]));
    let (event, effects) = lost(false);
    rows.push((0.0, event, effects));
    check_started("tools that change", rows);
}

#[test]
fn a_server_that_misses_a_ping_is_restarted_only_once_its_calls_have_ended() {
    let missed = || {
        [
            (1.0, ConnectionEvent::Suspected, vec![Ping]),
            (10.0, ConnectionEvent::PingMissed, vec![PublishUnresponsive]),
            (1.0, ConnectionEvent::Suspected, vec![]),
            (1.0, ConnectionEvent::ToolsListed, vec![]),
        ]
    };
    let after = |event, effects| missed().into_iter().chain([(60.0, event, effects)]).collect::<Vec<_>>();
    let failed = ConnectionFailure::new("it does not answer any more");
    let restarted = vec![PublishConnecting, Disconnect(EndReason::Lost(Some(failed.clone())))];
    check_started("its calls end", after(ConnectionEvent::CallsEnded(failed), restarted));
    check_started("it is closed", after(ConnectionEvent::CloseRequested, vec![Drain]));
    check_started("its process ends", after(ConnectionEvent::Lost(None), lost_without_reason()));
    let mut answers = after(ConnectionEvent::PingAnswered, vec![PublishConnected]);
    answers.push((1.0, ConnectionEvent::Suspected, vec![Ping]));
    check_started("it was busy", answers);
    check_started("a late end of an earlier wait", vec![(1.0, ConnectionEvent::PingAnswered, vec![])]);
}

fn lost_without_reason() -> Vec<ConnectionEffect> {
    vec![PublishConnecting, Disconnect(EndReason::Lost(None))]
}

/// Tests that an event that has no meaning in the current phase has no effects.
#[test]
fn an_event_of_another_phase_leads_to_nothing() {
    for event in [
        ConnectionEvent::Connected,
        ConnectionEvent::Drained,
        UNANSWERED,
        ConnectionEvent::RestartDue,
        ConnectionEvent::Lost(None),
    ] {
        check("before it is needed", true, vec![(1.0, event, vec![])]);
    }
    for event in [
        ConnectionEvent::Demanded,
        ConnectionEvent::Drained,
        UNANSWERED,
        ConnectionEvent::RestartDue,
        ConnectionEvent::IdleTimeout,
    ] {
        check("while it starts", false, vec![(1.0, event, vec![])]);
    }
    for event in [
        ConnectionEvent::Demanded,
        ConnectionEvent::Drained,
        UNANSWERED,
        ConnectionEvent::RestartDue,
        ConnectionEvent::Connected,
    ] {
        check_started("while it is connected", vec![(1.0, event, vec![])]);
    }
}
