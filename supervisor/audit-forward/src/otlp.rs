//! Sends records to an OpenTelemetry collector, as log records of OTLP over HTTP in JSON. A response with status 200 is the
//! acknowledgement.

use std::time::Duration;

use lockhouse_base::host_name::host_name;
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use crate::acceptance::Acceptance;
use crate::delivery_error::{DeliveryError, TlsError, request_error};
use crate::message::Severity;
use crate::segment_reader::{Batch, OutgoingRecord};
use crate::tls::{TlsFiles, client_config, no_tls};

/// Maximum time for a collector to answer one batch.
/// Bound: the audit log.
const TIMEOUT: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of a collector's response, in bytes. A longer one is a failure.
/// Bound: the audit log.
const RESPONSE_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of characters of a collector's text that are recorded.
const TEXT_CHARS_MAX: usize = 300;

/// An OpenTelemetry collector.
#[derive(Debug)]
pub(crate) struct Collector {
    url: Url,
    /// `None` if the connection is not encrypted.
    tls: Option<TlsFiles>,
    /// Headers of each request. Their values are secrets.
    headers: HeaderMap,
    client: Option<Client>,
}

/// The response to an export request, if a part of it was rejected.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ExportResponse {
    partial_success: Option<PartialSuccess>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PartialSuccess {
    /// A number, or a number as text.
    rejected_log_records: Value,
    error_message: String,
}

impl Collector {
    pub(crate) fn new(url: Url, tls: Option<TlsFiles>, headers: HeaderMap) -> Self {
        Self { url, tls, headers, client: None }
    }

    pub(crate) async fn send(&mut self, batch: &Batch) -> Result<Acceptance, DeliveryError> {
        let client = match self.client.take() {
            Some(client) => client,
            None => self.client()?,
        };
        let body = serde_json::to_vec(&export_request(batch)).unwrap_or_default();
        let request = client.post(self.url.clone()).headers(self.headers.clone());
        let request = request.header(CONTENT_TYPE, "application/json").body(body);
        let response = request.send().await.map_err(request_error)?;
        let accepted = read_response(response).await?;
        self.client = Some(client);
        Ok(accepted)
    }

    fn client(&self) -> Result<Client, TlsError> {
        // No redirect is followed, and no proxy of the environment is used: records go to the configured host.
        let builder = Client::builder().redirect(Policy::none()).no_proxy();
        let builder =
            builder.timeout(TIMEOUT).connect_timeout(CONNECT_TIMEOUT).https_only(self.tls.is_some());
        let tls = self.tls.as_ref().map_or_else(no_tls, client_config)?;
        builder.tls_backend_preconfigured(tls).build().map_err(|_| TlsError::Client)
    }
}

async fn read_response(mut response: Response) -> Result<Acceptance, DeliveryError> {
    let status = response.status();
    match status.as_u16() {
        200..300 => {}
        400 | 413 | 422 => return Err(DeliveryError::Rejected(status.as_u16())),
        429 | 502 | 503 | 504 => {
            let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
            let retry_after = retry_after.and_then(|seconds| seconds.trim().parse().ok());
            let retry_after = retry_after.map(Duration::from_secs);
            return Err(DeliveryError::Busy { status: status.as_u16(), retry_after });
        }
        status => return Err(DeliveryError::Status(status)),
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(request_error)? {
        if body.len() + chunk.len() > RESPONSE_BYTES_MAX {
            return Err(DeliveryError::LongResponse(RESPONSE_BYTES_MAX));
        }
        body.extend_from_slice(&chunk);
    }
    acceptance(&body)
}

/// Parses the body of a response with status 200. An empty body means that everything was accepted.
fn acceptance(body: &[u8]) -> Result<Acceptance, DeliveryError> {
    if body.trim_ascii().is_empty() {
        return Ok(Acceptance::Accepted);
    }
    let response: ExportResponse =
        serde_json::from_slice(body).map_err(|_| DeliveryError::InvalidResponse)?;
    let Some(partial) = response.partial_success else { return Ok(Acceptance::Accepted) };
    let rejected = &partial.rejected_log_records;
    let rejected = rejected.as_u64().or_else(|| rejected.as_str()?.parse().ok()).unwrap_or_default();
    if rejected == 0 {
        return Ok(Acceptance::Accepted);
    }
    let reason = partial.error_message.chars().take(TEXT_CHARS_MAX).collect();
    Ok(Acceptance::Partial { rejected, reason })
}

fn export_request(batch: &Batch) -> Value {
    let records: Vec<Value> = batch.records.iter().map(|record| log_record(batch, record)).collect();
    let resource = [
        attribute("service.name", json!({"stringValue": "lockhouse"})),
        attribute("service.version", json!({"stringValue": env!("CARGO_PKG_VERSION")})),
        attribute("host.name", json!({"stringValue": host_name().unwrap_or_default()})),
    ];
    json!({"resourceLogs": [{
        "resource": {"attributes": resource},
        "scopeLogs": [{"scope": {"name": "lockhouse.audit"}, "logRecords": records}],
    }]})
}

/// Returns the log record of a record: its text as the body, and what receivers select by as attributes.
fn log_record(batch: &Batch, record: &OutgoingRecord) -> Value {
    let time = humantime::parse_rfc3339(&record.time).ok();
    let time = time.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok()).unwrap_or_default();
    let (number, text) = Severity::of(record).of_otlp();
    json!({
        // Numbers of 64 bits are texts in the JSON of OTLP.
        "timeUnixNano": time.as_nanos().to_string(),
        "observedTimeUnixNano": time.as_nanos().to_string(),
        "severityNumber": number,
        "severityText": text,
        "eventName": format!("lockhouse.audit.{}", record.event),
        "body": {"stringValue": record.line},
        "attributes": [
            attribute("lockhouse.segment", json!({"stringValue": batch.segment.as_str()})),
            attribute("lockhouse.seq", json!({"intValue": record.seq.to_string()})),
            attribute("lockhouse.event", json!({"stringValue": record.event})),
            attribute("lockhouse.uid", json!({"intValue": batch.uid.to_string()})),
        ],
    })
}

fn attribute(key: &str, value: Value) -> Value {
    json!({"key": key, "value": value})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_tells_what_was_rejected() {
        let partial = |body: &str| acceptance(body.as_bytes());
        for accepted in
            ["", "{}", " \n", "{\"partialSuccess\":{}}", "{\"partialSuccess\":{\"errorMessage\":\"slow\"}}"]
        {
            assert_eq!(partial(accepted).expect(accepted), Acceptance::Accepted, "{accepted}");
        }
        let rejected = Acceptance::Partial { rejected: 2, reason: "too old".into() };
        for count in ["2", "\"2\""] {
            let body = format!(
                "{{\"partialSuccess\":{{\"rejectedLogRecords\":{count},\"errorMessage\":\"too old\"}}}}"
            );
            assert_eq!(partial(&body).expect("a response"), rejected, "{count}");
        }
        assert!(partial("<html>").is_err());
    }

    #[test]
    fn a_log_record_has_the_text_of_the_record_and_its_place() {
        let batch = crate::message::tests::batch("denial", "");
        let request = export_request(&batch);
        let record = &request["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0];
        assert_eq!(record["body"]["stringValue"], batch.records[0].line.as_str());
        assert_eq!(record["timeUnixNano"], "1769860800000001000");
        assert_eq!(record["severityText"], "WARN");
        assert_eq!(record["attributes"][1], json!({"key": "lockhouse.seq", "value": {"intValue": "3"}}));
    }
}
