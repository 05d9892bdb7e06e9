//! Notices of pending questions, for people who watch no questions at that moment. A notice says that a question waits, and where
//! it is answered. It decides nothing, and nothing waits for it.

mod command;
mod message;
mod webhook;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_messages::{ApprovalEvent, WatcherRole};
use tokio::sync::Semaphore;
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};
use url::Url;

use crate::approval_queue::{ApprovalQueue, WatcherKind};
use crate::approver::Approver;
use message::{Message, MessageKind, Notice};
pub use webhook::{Webhook, WebhookError};

/// Maximum number of notices that are sent to one receiver at one time. Further ones wait.
/// Bound: approvals and questions.
const AT_ONCE: usize = 4;
/// Time for a receiver to take a notice.
/// Bound: approvals and questions.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(30);
/// Pause before a notice that was not taken is sent again. It doubles with each failure.
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);

/// The receivers of notices, and what the notices say besides the question.
#[derive(Clone, Debug, Default)]
pub struct NoticeSettings {
    pub receivers: Vec<NoticeReceiver>,
    /// The address at which people answer, such as that of the page.
    pub link: Option<Url>,
}

/// A receiver of notices.
#[derive(Clone, Debug)]
pub struct NoticeReceiver {
    pub channel: NoticeChannel,
    /// How long a question waits before this receiver learns of it.
    pub after: Duration,
    /// After which time the receiver is told again, and again after each further such time. `None` for one notice only.
    pub remind: Option<Duration>,
}

/// How a notice reaches its receiver.
#[derive(Clone, Debug)]
pub enum NoticeChannel {
    Webhook(Box<Webhook>),
    /// A program with its arguments, which gets the notice over standard input.
    Command(Vec<String>),
}

/// Why a receiver did not take a notice.
#[derive(Debug, thiserror::Error)]
enum DeliveryError {
    #[error("it did not take the notice within {} s", DELIVERY_TIMEOUT.as_secs())]
    TimedOut,
    #[error("the response has the status {0}")]
    Status(u16),
    #[error("{0}")]
    Request(#[source] reqwest::Error),
    #[error("the program cannot be started: {0}")]
    Start(#[from] std::io::Error),
    #[error("the program failed: {0}")]
    Exit(std::process::ExitStatus),
}

/// Sends notices of each question of the queue as long as the question is open. Never ends.
pub(crate) async fn send_notices(queue: ApprovalQueue, settings: NoticeSettings) {
    let NoticeSettings { receivers, link } = settings;
    let receivers: Vec<_> = receivers
        .into_iter()
        .map(|receiver| (Arc::new(receiver), Arc::new(Semaphore::new(AT_ONCE))))
        .collect();
    loop {
        // It observes: it never answers, and no question counts it as somebody who could.
        let mut questions = queue.watch(WatcherKind::Socket(Approver::Owner(None)), WatcherRole::Observer);
        let mut open: HashMap<u64, DropGuard> = HashMap::new();
        while let Some(event) = questions.next().await {
            match &*event {
                ApprovalEvent::Ask(question) => {
                    let (notice, closed) =
                        (Arc::new(Notice::of(question, link.as_ref())), CancellationToken::new());
                    for (receiver, turns) in &receivers {
                        let telling = tell(receiver.clone(), turns.clone(), notice.clone());
                        tokio::spawn(closed.clone().run_until_cancelled_owned(telling));
                    }
                    open.insert(question.id, closed.drop_guard());
                }
                ApprovalEvent::Gone(id) => drop(open.remove(id)),
                _ => {}
            }
        }
    }
}

/// Tells a receiver of a question, at the times that the receiver has.
async fn tell(receiver: Arc<NoticeReceiver>, turns: Arc<Semaphore>, notice: Arc<Notice>) {
    sleep(receiver.after).await;
    deliver(&receiver.channel, &turns, &Message::new(MessageKind::Requested, &notice)).await;
    while let Some(interval) = receiver.remind {
        sleep(interval).await;
        deliver(&receiver.channel, &turns, &Message::new(MessageKind::Reminder, &notice)).await;
    }
}

/// Sends a message until the receiver has taken it.
async fn deliver(channel: &NoticeChannel, turns: &Semaphore, message: &Message) {
    let mut pause = RETRY_MIN;
    loop {
        let Ok(turn) = turns.acquire().await else { return };
        let sent = tokio::time::timeout(DELIVERY_TIMEOUT, channel.send(message)).await;
        drop(turn);
        match sent.unwrap_or(Err(DeliveryError::TimedOut)) {
            Ok(()) => return,
            Err(error) if pause == RETRY_MIN => {
                tracing::warn!(
                    "a notice of an approval was not delivered to {channel}, and is sent again: {error}"
                );
            }
            Err(_) => {}
        }
        sleep(pause).await;
        pause = (2 * pause).min(RETRY_MAX);
    }
}

impl NoticeChannel {
    async fn send(&self, message: &Message) -> Result<(), DeliveryError> {
        match self {
            Self::Webhook(webhook) => webhook.send(message).await,
            Self::Command(command) => command::run(command, message).await,
        }
    }
}

/// The receiver for the log. The path of a URL may be a secret.
impl std::fmt::Display for NoticeChannel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Webhook(webhook) => f.write_str(webhook.host()),
            Self::Command(command) => f.write_str(command.first().map_or("", String::as_str)),
        }
    }
}
