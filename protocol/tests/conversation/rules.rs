//! Tests of the conversation's rules that concern several messages: the order of runs, the ids of requests, and the
//! limits on output and calls.

use lockhouse_protocol::{
    Action, CallId, Conversation, ConversationLimits, ExceededLimit, FromWorker, Stream, Violation,
};

use crate::{AMPLE, PHASES, call, done, output, request, resting, running};

#[test]
fn code_may_be_sent_only_once_and_only_to_an_idle_worker() {
    for (phase, begin) in PHASES {
        let mut conversation = begin();
        assert_eq!(conversation.start_run(false), phase == "idle", "{phase}");
        assert!(!conversation.start_run(false), "{phase}, again");
    }
}

#[test]
fn a_resting_session_accepts_only_further_runs_of_the_session() {
    for (phase, begin) in PHASES {
        let mut conversation = begin();
        assert_eq!(conversation.start_run(true), ["idle", "resting"].contains(&phase), "{phase}");
        assert!(!conversation.start_run(true), "{phase}, again");
    }
}

#[test]
fn limits_apply_to_each_run_of_a_session_and_ids_continue() {
    let mut conversation = Conversation::new(ConversationLimits { calls: 1, output_bytes: 4, ..AMPLE });
    assert_eq!(conversation.receive(FromWorker::Ready), Ok(Action::Verify));
    for id in [1, 2, 3] {
        assert!(conversation.start_run(true));
        assert_eq!(conversation.receive(output("1234")), Ok(Action::Append(Stream::Stdout, "1234".into())));
        assert_eq!(conversation.receive(request(id, call())), Ok(Action::Answer(CallId(id), call())));
        assert!(conversation.receive(done()).is_ok());
        // An abandoned request gets no reply, and its id cannot be used again.
        assert_eq!(conversation.abandon_in_flight(), [CallId(id)]);
        assert!(!conversation.reply(CallId(id)));
    }
    // Output of threads that outlive their run counts as output of the next run.
    assert!(conversation.receive(output("123")).is_ok());
    assert!(conversation.start_run(true));
    assert!(conversation.abandon_in_flight().is_empty());
    assert_eq!(conversation.receive(output("45")), Ok(Action::Stop(ExceededLimit::Output)));
    assert!(!conversation.start_run(true));
    let mut conversation = resting();
    assert_eq!(conversation.receive(request(1, call())), Ok(Action::Answer(CallId(1), call())));
    assert!(conversation.start_run(true));
    assert_eq!(conversation.receive(request(1, call())), Err(Violation::ReusedCallId(CallId(1))));
}

#[test]
fn a_reply_without_a_request_is_refused() {
    for (phase, begin) in PHASES {
        for id in [0, 1, u32::MAX] {
            assert!(!begin().reply(CallId(id)), "{phase}, {id}");
        }
    }
}

#[test]
fn an_empty_piece_of_output_is_a_violation() {
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
    assert_eq!(many, Violation::TooManyInFlight(1));
    insta::assert_snapshot!(format!("{zero}\n{many}"), @r"
    it used call id 0, which is not larger than its last one
    it has more than 1 requests in flight
    ");
}

#[test]
fn the_largest_id_can_be_used() {
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
