//! Property test of the conversation between supervisor and worker: in random conversations, each step has the result
//! that the model predicts.

use lockhouse_protocol::{
    Action, CallId, Conversation, ConversationLimits, FromWorker, Violation, WorkerRequest,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::history::{Event, History, Verdict};
use crate::{AMPLE, call, done, expected_action, output, request};

/// A step of a random conversation, by the supervisor or by the worker.
#[derive(Clone, Debug)]
enum Step {
    /// The supervisor starts a run. The run is in a session if the value is `true`.
    Run(bool),
    Abandon,
    Reply(u32),
    Receive(Message),
}

#[derive(Clone, Debug)]
enum Message {
    Ready,
    Refused,
    Output(usize),
    /// The worker sends a request whose id is the highest id so far plus `above`. The request counts as a call of an
    /// upstream server if `counted` is true.
    Next {
        above: u32,
        counted: bool,
    },
    /// The worker sends a request with an arbitrary id. The request counts as a call of an upstream server if `counted`
    /// is true.
    Any {
        id: u32,
        counted: bool,
    },
    Done,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let message = prop_oneof![
        1 => Just(Message::Ready),
        1 => Just(Message::Refused),
        6 => (0_usize..6).prop_map(Message::Output),
        12 => (1_u32..4, any::<bool>()).prop_map(|(above, counted)| Message::Next { above, counted }),
        1 => (0_u32..20, any::<bool>()).prop_map(|(id, counted)| Message::Any { id, counted }),
        1 => Just(Message::Done),
    ];
    let step = prop_oneof![
        2 => any::<bool>().prop_map(Step::Run),
        1 => Just(Step::Abandon),
        8 => (0_u32..25).prop_map(Step::Reply),
        12 => message.prop_map(Step::Receive),
    ];
    let start = prop_oneof![
        1 => Just(vec![]),
        1 => Just(vec![Step::Receive(Message::Ready)]),
        8 => any::<bool>().prop_map(|session| vec![Step::Receive(Message::Ready), Step::Run(session)]),
    ];
    (start, vec(step, 0..60)).prop_map(|(start, steps)| [start, steps].concat())
}

fn limits() -> impl Strategy<Value = ConversationLimits> {
    (0_u32..8, 0_u32..6, 0_u64..30).prop_map(|(calls, parallel_calls, output_bytes)| ConversationLimits {
        calls,
        parallel_calls,
        output_bytes,
        ..AMPLE
    })
}

fn to_message(message: &Message, history: &History) -> FromWorker {
    let new_request =
        |id: u32, counted: bool| request(id, if counted { call() } else { WorkerRequest::ListServers });
    match *message {
        Message::Ready => FromWorker::Ready,
        Message::Refused => FromWorker::Refused { reason: "no".into() },
        Message::Output(bytes) => output(&"x".repeat(bytes)),
        Message::Next { above, counted } => new_request(history.last_id() + above, counted),
        Message::Any { id, counted } => new_request(id, counted),
        Message::Done => done(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_conversation_matches_the_model(limits in limits(), steps in steps()) {
        let mut conversation = Conversation::new(limits);
        let mut history = History::default();
        for step in steps {
            match step {
                Step::Run(in_session) => {
                    let phase = history.phase();
                    let may = phase == "idle" || phase == "resting" && in_session;
                    prop_assert_eq!(conversation.start_run(in_session), may, "{:?}", history);
                    history.0.extend(may.then_some(Event::Ran { in_session }));
                }
                Step::Abandon => {
                    let awaited = |id: &u32| history.phase() == "resting" && history.awaits_reply(*id);
                    let mut awaited: Vec<u32> = history.ids().filter(awaited).collect();
                    awaited.sort_unstable();
                    let abandoned: Vec<u32> = conversation.abandon_in_flight().iter().map(|call| call.0).collect();
                    prop_assert_eq!(&abandoned, &awaited, "{:?}", history);
                    history.0.extend(awaited.into_iter().map(Event::Replied));
                }
                Step::Reply(id) => {
                    let awaited = history.awaits_reply(id);
                    prop_assert_eq!(conversation.reply(CallId(id)), awaited, "{} in {:?}", id, history);
                    history.0.extend(awaited.then_some(Event::Replied(id)));
                }
                Step::Receive(message) => {
                    let message = to_message(&message, &history);
                    let result = conversation.receive(message.clone());
                    match history.expected(&message, limits) {
                        Verdict::Accept(event) => {
                            let phase = history.phase();
                            prop_assert_eq!(Some(result.unwrap()), expected_action(phase, &message));
                            history.0.push(event);
                        }
                        Verdict::Stop(limit) => {
                            prop_assert_eq!(result, Ok(Action::Stop(limit)), "{:?}", history);
                            history.0.push(Event::Over);
                        }
                        Verdict::Violation(violation) => {
                            prop_assert_eq!(result, Err(violation), "{:?}", history);
                            // The worker's further messages are ignored.
                            return Ok(());
                        }
                        Verdict::OutOfPhase => {
                            let out_of_phase = matches!(result, Err(Violation::OutOfPhase { .. }));
                            prop_assert!(out_of_phase, "{:?} in {:?}", result, history);
                            return Ok(());
                        }
                    }
                }
            }
        }
    }
}
