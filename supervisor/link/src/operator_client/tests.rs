//! Tests of an operator's connection with engines that answer, that end, and that know only lines.

use std::time::Duration;

use lockhouse_messages::{Access, AccessRefusal, GrantId, Owner, Role, Roles};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::timeout;

use super::*;
use crate::assembler::Parts;
use crate::connection::FROM_OPERATOR;
use crate::connection::Receiver;
use crate::encoding::{FromFront, read_from_front};

/// The end of an engine that grants the access of the connection, answers requests for the runs, does not know requests
/// for the sessions, and ends the connection at every other request.
struct Engine(OutboxSender);

impl Receiver for Engine {
    async fn receive(&mut self, _: ExchangeId, parts: Parts) -> std::io::Result<()> {
        let FromFront::Message(ToEngine::Request(id, _, request)) = read_from_front(parts)? else {
            return Ok(());
        };
        let response = match *request {
            Request::Authenticate(Credential::Connection) => Response::Access(Ok(Box::new(access()))),
            Request::Operator(OperatorRequest::ListRuns) => {
                Response::Operator(OperatorResponse::Runs(Vec::new()))
            }
            Request::Operator(OperatorRequest::ListSessions) => Response::Invalid("unknown".into()),
            Request::Operator(OperatorRequest::ListResults) => {
                Response::Refused(AccessRefusal::MissingRole(Role::Audit))
            }
            _ => return Err(std::io::ErrorKind::ConnectionAborted.into()),
        };
        self.0.send_urgent(id, to_parts(ToFront::Response(id, response))?);
        Ok(())
    }
}

fn access() -> Access {
    Access {
        grant: GrantId::CONNECTION,
        owner: Owner::LOCAL,
        name: None,
        client: None,
        only: None,
        roles: Roles::only(Role::Operate),
        expires_in: None,
    }
}

async fn serve(stream: DuplexStream) {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let greeting: Option<Greeting> = greetings::read(&mut reader).await.expect("a greeting");
    assert_eq!(greeting, Some(Greeting::new(None)));
    let welcome = GreetingReply::Welcome { version: VERSIONS.newest, incarnation: None };
    greetings::write(&mut writer, &welcome).await.expect("written");
    let (sender, outbox) = outbox();
    let mut engine = Engine(sender.clone());
    let _ = connection::serve(&mut reader, &mut writer, FROM_OPERATOR, &sender, outbox, &mut engine).await;
}

#[tokio::test]
async fn requests_are_answered_until_the_connection_ends_and_fail_then() {
    let (near, far) = tokio::io::duplex(1 << 20);
    let engine = tokio::spawn(serve(far));
    let client = OperatorClient::connect(near).await.unwrap_or_else(|error| panic!("{error:?}"));
    assert_eq!(client.ask(OperatorRequest::ListRuns).await, Ok(OperatorResponse::Runs(Vec::new())));
    assert_eq!(client.ask(OperatorRequest::ListSessions).await, Err(OperatorError::OtherVersion));
    let refused = client.ask(OperatorRequest::ListResults).await;
    let reason = "this access does not permit reading the audit log and results of other clients";
    assert_eq!(refused, Err(OperatorError::Refused(reason.into())));
    for _ in 0..3 {
        let asked = timeout(Duration::from_secs(20), client.ask(OperatorRequest::Health)).await;
        assert_eq!(asked, Ok(Err(OperatorError::NoAnswer)));
    }
    engine.await.expect("it has ended");
}

#[tokio::test]
async fn dropping_the_client_closes_the_connection() {
    let (near, far) = tokio::io::duplex(1 << 20);
    let engine = tokio::spawn(serve(far));
    let client = OperatorClient::connect(near).await;
    assert!(client.is_ok() && !engine.is_finished(), "control: it is open");
    drop(client);
    timeout(Duration::from_secs(20), engine).await.expect("in time").expect("it has ended");
}

#[tokio::test]
async fn an_engine_that_knows_only_lines_is_recognized_at_once() {
    for (reply, expected) in [
        (&b"{\"refused\":{\"id\":null}}\n"[..], OperatorError::OtherVersion),
        (b"\x00\x00\x00\x20{\"Unsupported\":{\"version\":1000}}", OperatorError::OtherVersion),
        (b"\xff\xff\xff\xff", OperatorError::NoAnswer),
        (b"", OperatorError::NoAnswer),
    ] {
        let (near, mut far) = tokio::io::duplex(1 << 10);
        let engine = tokio::spawn(async move {
            let mut line = Vec::new();
            // As an engine of an earlier version does, it waits for a line feed.
            while far.read_u8().await.is_ok_and(|byte| {
                line.push(byte);
                byte != b'\n'
            }) {}
            far.write_all(reply).await.expect("written");
            line
        });
        let connected = OperatorClient::connect(near).await.err();
        assert_eq!(connected, Some(expected), "{reply:?}");
        assert_eq!(engine.await.expect("it has ended").first(), Some(&0), "a greeting begins with zero");
    }
}
