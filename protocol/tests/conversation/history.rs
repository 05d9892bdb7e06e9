//! The model: what each message must come to after all that has happened.

use lockhouse_protocol::{CallId, ConversationLimits, ExceededLimit, FromWorker, Violation};

/// What has happened so far. The model keeps nothing else: each question is answered from the whole history.
#[derive(Debug, Default)]
pub(crate) struct History(pub(crate) Vec<Event>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Ready,
    Ran { in_session: bool },
    Rested,
    Printed(usize),
    Asked { id: u32, counted: bool },
    Replied(u32),
    Over,
}

impl History {
    pub(crate) fn has(&self, event: Event) -> bool {
        self.0.contains(&event)
    }

    pub(crate) fn phase(&self) -> &'static str {
        let of = |event: &Event| match event {
            Event::Ready => Some("idle"),
            Event::Ran { .. } => Some("running"),
            Event::Rested => Some("resting"),
            Event::Over => Some("over"),
            _ => None,
        };
        self.0.iter().rev().find_map(of).unwrap_or("sealing")
    }

    pub(crate) fn talks(&self) -> bool {
        ["running", "resting"].contains(&self.phase())
    }

    /// Of the run that is under way, or of the next one while a session rests.
    pub(crate) fn of_this_run(&self) -> &[Event] {
        let begin = self.0.iter().rposition(|event| *event == Event::Rested);
        &self.0[begin.unwrap_or(0)..]
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = u32> {
        self.0.iter().filter_map(|event| if let Event::Asked { id, .. } = event { Some(*id) } else { None })
    }

    pub(crate) fn awaits_reply(&self, id: u32) -> bool {
        self.ids().any(|asked| asked == id) && !self.has(Event::Replied(id))
    }

    pub(crate) fn last_id(&self) -> u32 {
        self.ids().max().unwrap_or(0)
    }

    pub(crate) fn calls(&self) -> usize {
        self.of_this_run().iter().filter(|event| matches!(event, Event::Asked { counted: true, .. })).count()
    }

    pub(crate) fn printed(&self) -> usize {
        let bytes = |event: &Event| if let Event::Printed(bytes) = event { *bytes } else { 0 };
        self.of_this_run().iter().map(bytes).sum()
    }

    /// What a message must come to, and what is then history.
    pub(crate) fn judge(&self, message: &FromWorker, limits: ConversationLimits) -> Verdict {
        let begun = self.has(Event::Ready) || self.has(Event::Over);
        match message {
            FromWorker::Ready if !begun => Verdict::Then(Event::Ready),
            FromWorker::Refused { .. } if !begun => Verdict::Then(Event::Over),
            FromWorker::Output { text, .. } if self.talks() && text.is_empty() => {
                Verdict::Violation(Violation::EmptyOutput)
            }
            FromWorker::Output { text, .. } if self.talks() => {
                if (self.printed() + text.len()) as u64 > limits.output_bytes {
                    return Verdict::Stop(ExceededLimit::Output);
                }
                Verdict::Then(Event::Printed(text.len()))
            }
            FromWorker::Request { call: CallId(id), request } if self.talks() => {
                let counted = request.goes_upstream();
                if *id == 0 || self.ids().any(|before| before >= *id) {
                    return Verdict::Violation(Violation::ReusedCallId(CallId(*id)));
                }
                if self.ids().filter(|id| self.awaits_reply(*id)).count() == limits.parallel_calls as usize {
                    return Verdict::Violation(Violation::TooManyUnderWay(limits.parallel_calls));
                }
                if counted && self.calls() == limits.calls as usize {
                    return Verdict::Stop(ExceededLimit::Calls);
                }
                Verdict::Then(Event::Asked { id: *id, counted })
            }
            FromWorker::Done(_) if self.phase() == "running" => {
                let in_session = self.has(Event::Ran { in_session: true });
                Verdict::Then(if in_session { Event::Rested } else { Event::Over })
            }
            _ => Verdict::OutOfPhase,
        }
    }
}

#[derive(Debug)]
pub(crate) enum Verdict {
    Then(Event),
    Stop(ExceededLimit),
    Violation(Violation),
    OutOfPhase,
}
