//! The MCP endpoint, `/mcp`: passes the message of each request to the session that it belongs to, or serves it by itself.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::RETRY_AFTER;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use futures_util::stream;
use lockhouse_link::{EngineClient, GrantedAccess};
use lockhouse_mcp::server::client_message::{ClientMessage, ClientRequest};
use lockhouse_mcp::server::http_head::{self, HttpLifecycle, LAST_EVENT_ID, SESSION_ID};
use lockhouse_mcp::server::{HttpReply, HttpSession, ID_IN_USE, IdInUse, serve_request};
use lockhouse_messages::HttpRefusal;
use rmcp::model::ErrorData;
use tokio_util::sync::CancellationToken;

use super::body::BodyReader;
use super::mcp_sessions::{Full, HostNotReached, McpSessions, NotDelivered};
use super::reply::to_response;
use super::{counters, drain};
use crate::McpHandler;
use crate::access::{ClientTurn, ClientTurns};

const TOO_MANY_SESSIONS: &str = "too many MCP sessions are in use: end some with DELETE, or retry later";
const SESSIONS_RETRY_AFTER_S: &str = "30";
const NOT_DELIVERED: &str =
    "the host that asked the question cannot be reached, and nothing was done: send the answer again";
const ANSWER_RETRY_AFTER_S: &str = "1";
const NO_SESSION_ID: &str = "Bad Request: Session ID is required";
const UNKNOWN_SESSION: &str = "Not Found: Session not found";
const UNEXPECTED_ANSWER: &str = "a JSON-RPC response answers no request here";

/// The state of the endpoint `/mcp`.
pub(super) struct McpEndpoint {
    pub(super) engine: EngineClient,
    pub(super) handler: McpHandler,
    pub(super) sessions: Arc<McpSessions>,
    pub(super) bodies: BodyReader,
    /// The turns of clients for lists.
    pub(super) turns: ClientTurns,
    /// Ends all sessions and event streams.
    pub(super) closing: CancellationToken,
    /// Ends the event streams that belong to no request.
    pub(super) retiring: CancellationToken,
}

/// Serves a request for `/mcp`, which was authenticated.
pub(super) async fn serve(State(endpoint): State<Arc<McpEndpoint>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let Some(access) = head.extensions.get::<GrantedAccess>().cloned() else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    let message = match endpoint.bodies.read(access.owner(), &head, body).await {
        Ok(message) => message,
        Err(refused) => return refused,
    };
    let in_flight = match drain::admit(&endpoint.engine, &head, message.as_ref()) {
        Ok(in_flight) => in_flight,
        Err(refused) => return *refused,
    };
    let head = Arc::new(head);
    let response = match (&head.method, message) {
        (&Method::POST, message) => endpoint.post(&access, message, &head).await,
        (&Method::GET, _) => {
            to_response(endpoint.get(&access, &head).await.unwrap_or_else(|refused| refused))
        }
        (&Method::DELETE, _) => {
            to_response(endpoint.delete(&access, &head).await.unwrap_or_else(|refused| refused))
        }
        _ => to_response(HttpReply::NotAllowed("GET, POST, DELETE")),
    };
    drain::hold_until_sent(in_flight, response)
}

impl McpEndpoint {
    async fn post(
        &self,
        access: &GrantedAccess,
        message: Option<ClientMessage>,
        head: &Arc<Parts>,
    ) -> Response {
        if let Err(refused) = http_head::check_post(&head.headers) {
            return to_response(refused);
        }
        let Some(message) = message else { return StatusCode::BAD_REQUEST.into_response() };
        let lifecycle = match http_head::check_message(&head.headers, &message) {
            Ok(lifecycle) => lifecycle,
            Err(refused) => return to_response(refused),
        };
        match (lifecycle, message) {
            (HttpLifecycle::SelfContained, ClientMessage::Request(request)) => {
                let handler = self.handler.for_new_connection();
                let _turn = self.turn(access, &request).await;
                to_response(serve_request(*request, handler, head.clone(), &self.closing).await)
            }
            (HttpLifecycle::SelfContained, ClientMessage::Notification(_)) => {
                to_response(HttpReply::Accepted)
            }
            (HttpLifecycle::SelfContained, ClientMessage::Answer(..)) => {
                let error = ErrorData::invalid_request(UNEXPECTED_ANSWER, None);
                to_response(HttpReply::error(StatusCode::BAD_REQUEST, None, error))
            }
            (HttpLifecycle::Session, message) => self.post_to_session(access, message, head).await,
        }
    }

    async fn post_to_session(
        &self,
        access: &GrantedAccess,
        message: ClientMessage,
        head: &Arc<Parts>,
    ) -> Response {
        let Some(id) = header(&head.headers, SESSION_ID) else {
            return match message {
                ClientMessage::Request(request) if request.method == "initialize" => {
                    self.begin_session(access, *request, head).await
                }
                _ => to_response(HttpReply::Text(StatusCode::BAD_REQUEST, NO_SESSION_ID.into())),
            };
        };
        let session = match self.session(access, id, head).await {
            Ok(session) => session,
            Err(refused) => return to_response(refused),
        };
        match message {
            ClientMessage::Request(request) => {
                let turn = self.turn(access, &request).await;
                match session.begin(*request, head.clone()).await {
                    // The turn lasts as long as the events.
                    Ok(events) => to_response(HttpReply::Events(
                        events
                            .inspect(move |_| {
                                let _ = &turn;
                            })
                            .boxed(),
                    )),
                    Err(IdInUse(id)) => {
                        counters::count_refusal(HttpRefusal::Body);
                        let error = ErrorData::invalid_request(ID_IN_USE, None);
                        to_response(HttpReply::error(StatusCode::BAD_REQUEST, Some(id), error))
                    }
                }
            }
            message => {
                if session.expects(&message) {
                    session.receive(message, Some(head.clone()));
                } else if let Err(NotDelivered) = self.sessions.pass_on(access, id, &message).await {
                    let retry = [(RETRY_AFTER, ANSWER_RETRY_AFTER_S)];
                    return (StatusCode::SERVICE_UNAVAILABLE, retry, NOT_DELIVERED).into_response();
                }
                to_response(HttpReply::Accepted)
            }
        }
    }

    /// Returns the end of the ids of questions to clients, by which all hosts of a cluster know whose question is answered.
    fn question_suffix(&self) -> Option<String> {
        self.engine.settings().host_tag.map(|tag| tag.to_string())
    }

    /// Waits for a turn of the client, if the request costs the processor much and nobody waits for anything else. Runs and calls
    /// have limits of the engine.
    async fn turn(&self, access: &GrantedAccess, request: &ClientRequest) -> Option<ClientTurn> {
        let costs = request.method.ends_with("/list") || request.method == "server/discover";
        if costs { Some(self.turns.take(access.owner()).await) } else { None }
    }

    /// Begins a session with its first request, `initialize`.
    async fn begin_session(
        &self,
        access: &GrantedAccess,
        request: ClientRequest,
        head: &Arc<Parts>,
    ) -> Response {
        let session = Arc::new(HttpSession::new(
            self.handler.for_new_connection(),
            self.question_suffix(),
            &self.closing,
        ));
        let Ok(events) = session.begin(request, head.clone()).await else {
            return StatusCode::BAD_REQUEST.into_response();
        };
        if !session.is_begun() {
            return to_response(HttpReply::Events(events));
        }
        match self.sessions.add(access, session).await {
            Ok(id) => {
                let id = [(HeaderName::from_static(SESSION_ID), id)];
                (id, to_response(HttpReply::Events(events))).into_response()
            }
            Err(Full) => {
                counters::count_refusal(HttpRefusal::Quota);
                let retry = [(RETRY_AFTER, SESSIONS_RETRY_AFTER_S)];
                (StatusCode::TOO_MANY_REQUESTS, retry, TOO_MANY_SESSIONS).into_response()
            }
        }
    }

    /// Opens the stream of the events that belong to no request, or continues a stream.
    async fn get(&self, access: &GrantedAccess, head: &Arc<Parts>) -> Result<HttpReply, HttpReply> {
        let headers = &head.headers;
        http_head::check_get(headers)?;
        let session = self.session(access, session_id(headers)?, head).await?;
        let events = match header(headers, LAST_EVENT_ID) {
            // An error would make some clients try the same again for ever.
            Some(last) => session.resume(last).unwrap_or_else(|| stream::empty().boxed()),
            None => session.listen(),
        };
        Ok(HttpReply::Events(events.take_until(self.retiring.clone().cancelled_owned()).boxed()))
    }

    async fn delete(&self, access: &GrantedAccess, head: &Arc<Parts>) -> Result<HttpReply, HttpReply> {
        let id = session_id(&head.headers)?;
        self.session(access, id, head).await?;
        self.sessions.end(access, id).await;
        Ok(HttpReply::Accepted)
    }

    /// Returns a session of the client, also if another front has begun it.
    ///
    /// # Errors
    /// The refusal of the request.
    async fn session(
        &self,
        access: &GrantedAccess,
        id: &str,
        head: &Arc<Parts>,
    ) -> Result<Arc<HttpSession<McpHandler>>, HttpReply> {
        let resume = |client| {
            let handler = self.handler.for_new_connection();
            HttpSession::of_client(handler, self.question_suffix(), client, head, &self.closing)
        };
        match self.sessions.find_or_resume(access, id, resume).await {
            Ok(Some(session)) => Ok(session),
            Ok(None) => Err(HttpReply::Text(StatusCode::NOT_FOUND, UNKNOWN_SESSION.into())),
            Err(HostNotReached(reason)) => {
                Err(HttpReply::Text(StatusCode::SERVICE_UNAVAILABLE, reason.into()))
            }
        }
    }
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// Returns the session id of a request without a message.
fn session_id(headers: &HeaderMap) -> Result<&str, HttpReply> {
    match http_head::check_version(headers)? {
        HttpLifecycle::SelfContained => Err(HttpReply::NotAllowed("POST")),
        HttpLifecycle::Session => header(headers, SESSION_ID)
            .ok_or_else(|| HttpReply::Text(StatusCode::BAD_REQUEST, NO_SESSION_ID.into())),
    }
}
