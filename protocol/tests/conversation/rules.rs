//! What holds beyond one message: of runs, requests, output and limits.

use lockhouse_protocol::{
    Action, CallId, Conversation, ConversationLimits, ExceededLimit, FromWorker, Stream, Violation,
};

use crate::{AMPLE, PHASES, call, done, output, request, resting, running};

#[test]
fn code_may_be_sent_to_an_idle_worker_alone_and_once() {
    for (phase, begin) in PHASES {
        let mut conversation = begin();
        assert_eq!(conversation.run(false), phase == "idle", "{phase}");
        assert!(!conversation.run(false), "{phase}, again");
    }
}

#[test]
fn a_session_runs_again_and_what_rests_serves_nothing_else() {
    for (phase, begin) in PHASES {
        let mut conversation = begin();
        assert_eq!(conversation.run(true), ["idle", "resting"].contains(&phase), "{phase}");
        assert!(!conversation.run(true), "{phase}, again");
    }
}

#[test]
fn each_run_of_a_session_is_counted_by_itself_and_ids_go_on() {
    let mut conversation = Conversation::new(ConversationLimits { calls: 1, output_bytes: 4, ..AMPLE });
    assert_eq!(conversation.receive(FromWorker::Ready), Ok(Action::Verify));
    for id in [1, 2, 3] {
        assert!(conversation.run(true));
        assert_eq!(conversation.receive(output("1234")), Ok(Action::Append(Stream::Stdout, "1234".into())));
        assert_eq!(conversation.receive(request(id, call())), Ok(Action::Answer(CallId(id), call())));
        assert!(conversation.receive(done()).is_ok());
        // Nobody will answer it, and its id is used up.
        assert_eq!(conversation.abandon(), [CallId(id)]);
        assert!(!conversation.reply(CallId(id)));
    }
    // Of threads that are left: the next run's.
    assert!(conversation.receive(output("123")).is_ok());
    assert!(conversation.run(true));
    assert!(conversation.abandon().is_empty());
    assert_eq!(conversation.receive(output("45")), Ok(Action::Stop(ExceededLimit::Output)));
    assert!(!conversation.run(true));
    let mut conversation = resting();
    assert_eq!(conversation.receive(request(1, call())), Ok(Action::Answer(CallId(1), call())));
    assert!(conversation.run(true));
    assert_eq!(conversation.receive(request(1, call())), Err(Violation::ReusedCallId(CallId(1))));
}

#[test]
fn nothing_is_answered_that_was_not_asked() {
    for (phase, begin) in PHASES {
        for id in [0, 1, u32::MAX] {
            assert!(!begin().reply(CallId(id)), "{phase}, {id}");
        }
    }
}

#[test]
fn output_of_nothing_is_a_violation() {
    assert_eq!(running(AMPLE).receive(output("")), Err(Violation::EmptyOutput));
}

#[test]
fn the_violations_of_a_request() {
    let limits = ConversationLimits { parallel_calls: 1, ..AMPLE };
    let mut conversation = running(limits);
    let zero = conversation.receive(request(0, call())).unwrap_err();
    assert_eq!(zero, Violation::ReusedCallId(CallId(0)));
    conversation.receive(request(7, call())).unwrap();
    let many = conversation.receive(request(8, call())).unwrap_err();
    assert_eq!(many, Violation::TooManyUnderWay(1));
    insta::assert_snapshot!(format!("{zero}\n{many}"), @r"
    it used call id 0 again, or counted down
    it has more than 1 requests under way
    ");
}

#[test]
fn the_last_id_of_all_can_be_used() {
    let mut conversation = running(AMPLE);
    assert!(conversation.receive(request(u32::MAX, call())).is_ok());
    assert_eq!(
        conversation.receive(request(u32::MAX, call())),
        Err(Violation::ReusedCallId(CallId(u32::MAX)))
    );
    assert!(conversation.reply(CallId(u32::MAX)));
}

#[test]
fn the_largest_limits_do_not_overflow() {
    let limits = ConversationLimits {
        calls: u32::MAX,
        parallel_calls: u32::MAX,
        output_bytes: u64::MAX,
        frame_bytes: u32::MAX,
    };
    let mut conversation = running(limits);
    for id in 1..1_000 {
        assert!(conversation.receive(request(id, call())).is_ok());
        assert!(conversation.receive(output("text")).is_ok());
    }
}
