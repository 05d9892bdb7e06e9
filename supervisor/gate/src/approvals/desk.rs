//! Where questions lie open for people other than the one behind the AI client: whoever runs `lockhouse approvals`, and
//! whoever sits at the terminal of `lockhouse run`.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use lockhouse_audit::Person;
use tokio::sync::{mpsc, oneshot};

use super::Approval;
use super::messages::{Ask, Decision, FromSupervisor, PersonsAnswer};
use super::outcome::{Outcome, Refusal};

/// Messages that wait for one who watches. Who does not read them is let go.
const UNREAD_MAX: usize = 2_048;
/// Questions that are over of which it is remembered how.
const OVER_MAX: usize = 200;

/// How an answer reached us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Means {
    Client,
    /// The control socket, and who is at its other end, once they have answered.
    Local(Option<Person>),
    Terminal,
}

impl Means {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Local(_) => "local",
            Self::Terminal => "terminal",
        }
    }

    /// The user of this machine who answered.
    pub(super) fn person(self) -> Option<Person> {
        match self {
            Self::Client => None,
            Self::Local(person) => person,
            Self::Terminal => Some(Person::of_this_process()),
        }
    }
}

/// From where somebody watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seat {
    /// The control socket, with who is at its other end.
    Socket(Option<Person>),
    /// The terminal of this process.
    Terminal,
}

/// Why an answer is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Untaken {
    #[error("it was answered already, and the first answer counts")]
    Answered,
    #[error("it is over: the time for it was up, or its execution has ended")]
    Over,
    #[error("there is no question with this number")]
    Unknown,
    #[error("the digest is not that of this question: look again at what is asked")]
    OtherDigest,
    #[error("this scope is not offered for this question")]
    Scope,
}

/// The desk. Copies are the same one.
#[derive(Clone, Debug, Default)]
pub struct Desk(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    last: u64,
    open: BTreeMap<u64, Open>,
    /// The last of those that are over, and why.
    over: VecDeque<(u64, Untaken)>,
    watchers: BTreeMap<u64, mpsc::Sender<Arc<FromSupervisor>>>,
}

#[derive(Debug)]
struct Open {
    ask: Arc<FromSupervisor>,
    digest: String,
    scopes: Vec<Approval>,
    answer: oneshot::Sender<(Outcome, Means)>,
}

impl State {
    fn tell(&mut self, message: &Arc<FromSupervisor>) {
        self.watchers.retain(|_, watcher| watcher.try_send(message.clone()).is_ok());
    }

    fn end(&mut self, id: u64, why: Untaken) -> Option<Open> {
        let open = self.open.remove(&id)?;
        self.over.push_back((id, why));
        if self.over.len() > OVER_MAX {
            self.over.pop_front();
        }
        self.tell(&Arc::new(FromSupervisor::Gone(id)));
        Some(open)
    }
}

impl Desk {
    /// Whether somebody is there to be asked.
    pub(super) fn is_watched(&self) -> bool {
        !self.state().watchers.is_empty()
    }

    /// Lays a question open, and waits for the first answer. None if there is none in time. Who comes to watch meanwhile
    /// sees it too.
    pub(super) async fn put(&self, ask: Ask, patience: Duration) -> Option<(Outcome, Means)> {
        let (answer, answered) = oneshot::channel();
        let withdrawn = {
            let mut state = self.state();
            state.last += 1;
            let id = state.last;
            let (digest, scopes) = (ask.digest.clone(), ask.scopes.clone());
            let ask = Arc::new(FromSupervisor::Ask(Box::new(Ask { id, ..ask })));
            state.tell(&ask);
            state.open.insert(id, Open { ask, digest, scopes, answer });
            Withdrawn { desk: self, id }
        };
        let answered = tokio::time::timeout(patience, answered).await;
        drop(withdrawn);
        answered.ok()?.ok()
    }

    /// Somebody comes to watch, and sees all questions that are open.
    pub fn watch(&self, seat: Seat) -> Watcher {
        let (sender, messages) = mpsc::channel(UNREAD_MAX);
        let mut state = self.state();
        for open in state.open.values() {
            let _ = sender.try_send(open.ask.clone());
        }
        state.last += 1;
        let number = state.last;
        state.watchers.insert(number, sender);
        Watcher { desk: self.clone(), number, seat, messages }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

/// Takes a question away, unless it was answered.
struct Withdrawn<'a> {
    desk: &'a Desk,
    id: u64,
}

impl Drop for Withdrawn<'_> {
    fn drop(&mut self) {
        let _ = self.desk.state().end(self.id, Untaken::Over);
    }
}

/// Somebody who watches. They leave when this is dropped.
#[derive(Debug)]
pub struct Watcher {
    desk: Desk,
    number: u64,
    seat: Seat,
    messages: mpsc::Receiver<Arc<FromSupervisor>>,
}

impl Watcher {
    /// None when they did not read what there was.
    pub async fn next(&mut self) -> Option<Arc<FromSupervisor>> {
        self.messages.recv().await
    }

    /// Takes an answer, if it is one to a question that is open.
    pub fn answer(&self, answer: &PersonsAnswer) -> Result<(), Untaken> {
        let mut state = self.desk.state();
        let Some(open) = state.open.get(&answer.id) else {
            let over = state.over.iter().find(|(id, _)| *id == answer.id);
            return Err(over.map_or(Untaken::Unknown, |(_, why)| *why));
        };
        if open.digest != answer.digest {
            return Err(Untaken::OtherDigest);
        }
        if !open.scopes.contains(&answer.scope) {
            return Err(Untaken::Scope);
        }
        let outcome = match answer.decision {
            Decision::Approve => Outcome::Approved(answer.scope),
            Decision::Decline => Outcome::Refused(Refusal::Declined),
        };
        let means = match self.seat {
            Seat::Socket(person) => Means::Local(person),
            Seat::Terminal => Means::Terminal,
        };
        let open = state.end(answer.id, Untaken::Answered).ok_or(Untaken::Over)?;
        open.answer.send((outcome, means)).map_err(|_| Untaken::Over)
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.desk.state().watchers.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask() -> Ask {
        Ask {
            id: 0,
            digest: "d1".into(),
            execution: String::new(),
            client: None,
            seconds: 1.0,
            text: String::new(),
            scopes_text: String::new(),
            scopes: vec![Approval::Once, Approval::Execution],
            calls: Vec::new(),
            diff: None,
        }
    }

    fn answer(id: u64, digest: &str, scope: Approval) -> PersonsAnswer {
        PersonsAnswer { id, digest: digest.into(), decision: Decision::Approve, scope }
    }

    const LONG: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn the_first_valid_answer_counts_and_every_other_is_refused() {
        let desk = Desk::default();
        assert!(!desk.is_watched());
        let (mut first, second) = (desk.watch(Seat::Socket(None)), desk.watch(Seat::Terminal));
        let putting = tokio::spawn({
            let desk = desk.clone();
            async move { desk.put(ask(), LONG).await }
        });
        let Some(FromSupervisor::Ask(shown)) = first.next().await.as_deref().cloned() else {
            panic!("no question")
        };
        let id = shown.id;
        for (given, why) in [
            (answer(id, "d2", Approval::Once), Untaken::OtherDigest),
            (answer(id, "", Approval::Once), Untaken::OtherDigest),
            (answer(id, "d1", Approval::Always), Untaken::Scope),
            (answer(id + 7, "d1", Approval::Once), Untaken::Unknown),
        ] {
            assert_eq!(first.answer(&given), Err(why), "{given:?}");
        }
        assert_eq!(second.answer(&answer(id, "d1", Approval::Execution)), Ok(()));
        assert_eq!(first.answer(&answer(id, "d1", Approval::Once)), Err(Untaken::Answered));
        let said = putting.await.expect("one");
        assert_eq!(said, Some((Outcome::Approved(Approval::Execution), Means::Terminal)));
        assert_eq!(first.next().await.as_deref(), Some(&FromSupervisor::Gone(id)));
        drop((first, second));
        assert!(!desk.is_watched());
    }

    #[tokio::test]
    async fn a_question_that_is_over_takes_no_answer() {
        let desk = Desk::default();
        assert_eq!(desk.put(ask(), Duration::from_millis(1)).await, None);
        let watcher = desk.watch(Seat::Socket(None));
        assert_eq!(watcher.answer(&answer(1, "d1", Approval::Once)), Err(Untaken::Over));
        // Who comes late sees what is open, and what is withdrawn goes.
        let mut late = {
            let putting = desk.put(ask(), LONG);
            tokio::pin!(putting);
            assert!(futures_util::poll!(&mut putting).is_pending());
            desk.watch(Seat::Socket(None))
        };
        assert!(matches!(late.next().await.as_deref(), Some(FromSupervisor::Ask(_))));
        assert!(matches!(late.next().await.as_deref(), Some(FromSupervisor::Gone(_))));
    }
}
