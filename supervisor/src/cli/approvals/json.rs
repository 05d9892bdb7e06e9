//! The messages of all supervisors as JSON lines, each with its process, and answers in the same form.

use lockhouse_gate::PersonsAnswer;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::lines::Lines;
use super::screen::{Event, Reply};
use crate::cli::output;

/// A line of standard input.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    supervisor: u32,
    answer: PersonsAnswer,
}

/// Until nobody reads any more. Whoever closes the input only watches.
pub(super) async fn converse(
    mut lines: Lines,
    mut events: mpsc::Receiver<Event>,
    replies: mpsc::Sender<Reply>,
) {
    let mut listens = true;
    while !output::unread() {
        tokio::select! {
            event = events.recv() => match event {
                Some(event) => println!("{}", line_of(event)),
                None => return,
            },
            line = lines.next(), if listens => match line.as_deref().map(serde_json::from_str) {
                None => listens = false,
                Some(Ok(Line { supervisor, answer })) => {
                    if replies.send(Reply { supervisor, answer }).await.is_err() {
                        return;
                    }
                }
                Some(Err(error)) => {
                    println!("{}", json!({"refused": {"id": null, "reason": format!("this is no answer: {error}")}}));
                }
            },
        }
    }
}

fn line_of(Event { supervisor, message }: Event) -> Value {
    let mut line = message.map_or_else(|| json!({"left": true}), |message| json!(message));
    line["supervisor"] = supervisor.into();
    line
}
