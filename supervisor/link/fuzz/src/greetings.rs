//! Fuzzes the reading of greetings and their replies, the first messages of a connection, which also say who may speak to the control socket.

use std::fmt::Debug;
use std::io::ErrorKind;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use lockhouse_link::greetings;
use lockhouse_messages::{Greeting, GreetingReply};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Coverage;

/// Reads the bytes of a connection as a front's greeting and as an engine's reply.
pub fn first_messages(bytes: &[u8]) -> Coverage {
    let mut reached = read::<Greeting>(bytes);
    reached.extend(read::<GreetingReply>(bytes));
    reached
}

fn read<M: DeserializeOwned + Serialize + PartialEq + Debug>(mut bytes: &[u8]) -> Coverage {
    let kind = match at_once(greetings::read::<M>(&mut bytes)) {
        Ok(None) => "closed".to_owned(),
        Ok(Some(message)) => {
            let mut written = Vec::new();
            at_once(greetings::write(&mut written, &message)).expect("what was read can be written");
            let again = at_once(greetings::read::<M>(&mut &*written)).expect("it can be read");
            assert_eq!(again.as_ref(), Some(&message));
            let text = format!("{message:?}");
            text.chars().take_while(char::is_ascii_alphanumeric).collect()
        }
        Err(error) if error.to_string().contains("too long") => "too long".to_owned(),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => "incomplete".to_owned(),
        Err(_) => "invalid".to_owned(),
    };
    Coverage::from([kind])
}

/// Returns the result of reading or writing bytes in memory, which never waits.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("it waits"),
    }
}
