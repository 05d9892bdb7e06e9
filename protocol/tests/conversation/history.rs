//! A model of the conversation between supervisor and worker: it computes the expected result of each message from the
//! history of events.

use lockhouse_protocol::{CallId, ConversationLimits, ExceededLimit, FromWorker, Violation};

/// The events of a conversation so far, in order. The model has no other state: it computes each result from all
/// events.
#[derive(Debug, Default)]
pub(crate) struct History(pub(crate) Vec<Event>);

/// An event that the model records: a message that the conversation accepted, an action of the supervisor, or the end
/// of the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Ready,
    Ran { in_session: bool },
    Rested,
    Printed(usize),
    Requested { id: u32, counted: bool },
    Replied(u32),
    Over,
}

impl History {
    pub(crate) fn has(&self, event: Event) -> bool {
        self.0.contains(&event)
    }

    pub(crate) fn phase(&self) -> &'static str {
        let phase = |event: &Event| match event {
            Event::Ready => Some("idle"),
            Event::Ran { .. } => Some("running"),
            Event::Rested => Some("resting"),
            Event::Over => Some("over"),
            _ => None,
        };
        self.0.iter().rev().find_map(phase).unwrap_or("sealing")
    }

    pub(crate) fn may_send(&self) -> bool {
        ["running", "resting"].contains(&self.phase())
    }

    /// Returns the events since the last run ended, or all events if no run has ended. These are the events that count
    /// towards the limits of the current run or, between two runs of a session, of the next run.
    pub(crate) fn events_of_run(&self) -> &[Event] {
        let begin = self.0.iter().rposition(|event| *event == Event::Rested);
        &self.0[begin.unwrap_or(0)..]
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = u32> {
        self.0
            .iter()
            .filter_map(|event| if let Event::Requested { id, .. } = event { Some(*id) } else { None })
    }

    pub(crate) fn awaits_reply(&self, id: u32) -> bool {
        self.ids().any(|other| other == id) && !self.has(Event::Replied(id))
    }

    pub(crate) fn last_id(&self) -> u32 {
        self.ids().max().unwrap_or(0)
    }

    pub(crate) fn calls(&self) -> usize {
        self.events_of_run()
            .iter()
            .filter(|event| matches!(event, Event::Requested { counted: true, .. }))
            .count()
    }

    pub(crate) fn printed(&self) -> usize {
        let bytes = |event: &Event| if let Event::Printed(bytes) = event { *bytes } else { 0 };
        self.events_of_run().iter().map(bytes).sum()
    }

    /// Returns how the conversation must react to a message from the worker. If it must accept the message, the
    /// result contains the event to add to the history.
    pub(crate) fn expected(&self, message: &FromWorker, limits: ConversationLimits) -> Verdict {
        let begun = self.has(Event::Ready) || self.has(Event::Over);
        match message {
            FromWorker::Ready if !begun => Verdict::Accept(Event::Ready),
            FromWorker::Refused { .. } if !begun => Verdict::Accept(Event::Over),
            FromWorker::Output { text, .. } if self.may_send() && text.is_empty() => {
                Verdict::Violation(Violation::EmptyOutput)
            }
            FromWorker::Output { text, .. } if self.may_send() => {
                if (self.printed() + text.len()) as u64 > limits.output_bytes {
                    return Verdict::Stop(ExceededLimit::Output);
                }
                Verdict::Accept(Event::Printed(text.len()))
            }
            FromWorker::Request { call: CallId(id), request } if self.may_send() => {
                let counted = request.goes_upstream();
                if *id == 0 || self.ids().any(|before| before >= *id) {
                    return Verdict::Violation(Violation::ReusedCallId(CallId(*id)));
                }
                if self.ids().filter(|id| self.awaits_reply(*id)).count() == limits.parallel_calls as usize {
                    return Verdict::Violation(Violation::TooManyInFlight(limits.parallel_calls));
                }
                if counted && self.calls() == limits.calls as usize {
                    return Verdict::Stop(ExceededLimit::Calls);
                }
                Verdict::Accept(Event::Requested { id: *id, counted })
            }
            FromWorker::Done(_) if self.phase() == "running" => {
                let in_session = self.has(Event::Ran { in_session: true });
                Verdict::Accept(if in_session { Event::Rested } else { Event::Over })
            }
            _ => Verdict::OutOfPhase,
        }
    }
}

/// How the conversation must react to a message, as the model predicts it.
#[derive(Debug)]
pub(crate) enum Verdict {
    Accept(Event),
    Stop(ExceededLimit),
    Violation(Violation),
    OutOfPhase,
}
