//! Requests for data: events, the details of a run, the audit log and stored results.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::access::SESSION_LIFETIME;
use super::activity::{AuditQuery, rfc3339};
use super::error::{ActionError, ErrorCode};
use super::events;
use super::page_state::PageStateExtractor;
use super::section::Section;

/// Returns the body of the response to a login.
pub(super) fn login_response(key: &str) -> Json<Value> {
    let expires = std::time::SystemTime::now() + SESSION_LIFETIME;
    Json(json!({"key": key, "expires": rfc3339(expires)}))
}

pub(super) async fn events(
    State(state): PageStateExtractor,
    headers: HeaderMap,
) -> Result<Response, ActionError> {
    let viewer = state.access.viewer(&headers)?;
    let page = state.sections.open_page(&viewer)?;
    let hello = json!({
        "version": env!("CARGO_PKG_VERSION"), "user": viewer.name(), "may": viewer.rights().names(),
        "now": rfc3339(std::time::SystemTime::now()), "address": state.address,
        "audit": state.activity.error().is_none(), "audit_error": state.activity.error(),
    });
    let access = state.access.clone();
    let is_valid = move || access.viewer(&headers).is_ok();
    Ok(events::respond(&state.sections, page, viewer, &hello, is_valid))
}

pub(super) async fn run(
    State(state): PageStateExtractor,
    Path(execution): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ActionError> {
    let viewer = state.access.viewer(&headers)?;
    let details = state.activity.run(execution).await?;
    if !viewer.may_read_run(details.client.as_deref()) {
        return Err(ActionError::new(ErrorCode::NotFound, "there is no such run"));
    }
    Ok(Json(details.json).into_response())
}

pub(super) async fn audit(
    State(state): PageStateExtractor,
    query: Result<Query<AuditQuery>, axum::extract::rejection::QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, ActionError> {
    let viewer = state.access.viewer(&headers)?;
    let invalid = |error: &dyn std::fmt::Display| ActionError::new(ErrorCode::Invalid, error.to_string());
    let Query(mut query) = query.map_err(|error| invalid(&error))?;
    if let Some(only) = viewer.only_client() {
        query.client = Some(only.to_owned());
    }
    Ok(Json(state.activity.query(query).await?).into_response())
}

pub(super) async fn stored_result(
    State(state): PageStateExtractor,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ActionError> {
    let viewer = state.access.viewer(&headers)?;
    let listed = state.sections.value(Section::Results);
    let mut results = listed["results"].as_array().into_iter().flatten();
    if !results.any(|result| result["id"] == id.as_str() && viewer.may_see_item(Section::Results, result)) {
        let message = "there is no such result: it has expired, or newer ones needed its space";
        return Err(ActionError::new(ErrorCode::NotFound, message));
    }
    Ok(state.operator.stored_result(id).await?.into_response())
}
