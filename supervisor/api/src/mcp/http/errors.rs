//! Requests that are refused before a message is read. The SDK's service reports the reason as plain text, but clients of the
//! protocol read JSON-RPC: changes the form of a refusal, never the decision.

use super::super::lines::ErrorMessage;
use super::super::server::method_not_found;
use axum::body::{Body, Bytes};
use axum::http::header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use axum::http::{Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use rmcp::model::{ErrorCode, ErrorData, RequestId};
use serde_json::Value;
use vm_system_protocol::input::not_json;
use vm_system_runtime::shares::ShareRefusal;

/// Longest text of the service that is forwarded (bytes).
const TEXT_BYTES: usize = 4_096;
/// Prefix of the service's text for a body that is not a message.
const UNREADABLE: &str = "fail to deserialize request body ";
/// JSON-RPC leaves these numbers to servers.
const BUSY: ErrorCode = ErrorCode(-32_000);

/// Why a request is not routed to a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoSession {
    /// The session does not exist, or belongs to another caller.
    Unknown,
    /// All of them, or of the owner's share, are in use.
    TooMany(ShareRefusal),
    /// The end of the session could not be written.
    NotRecorded,
}

/// The response to a request without a session.
pub(super) fn without_session(why: NoSession, body: &[u8]) -> Response<Body> {
    let id = id_of(body);
    match why {
        NoSession::Unknown => {
            let why = "no such session: initialize a new one";
            refusal(StatusCode::NOT_FOUND, id, ErrorData::invalid_request(why, None))
        }
        NoSession::NotRecorded => {
            let why = "the session is not ended: that could not be written; the log of the daemon says why";
            refusal(StatusCode::INTERNAL_SERVER_ERROR, id, ErrorData::internal_error(why, None))
        }
        NoSession::TooMany(share) => {
            let why = format!("{share}: try again later");
            let mut busy = refusal(StatusCode::SERVICE_UNAVAILABLE, id, ErrorData::new(BUSY, why, None));
            busy.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
            busy
        }
    }
}

/// The response to a request of a method that does not exist any more.
pub(super) fn unknown_method(body: &[u8], method: &str) -> Response<Body> {
    refusal(StatusCode::NOT_FOUND, id_of(body), method_not_found(method))
}

/// The response to a message whose address is invalid.
pub(super) fn invalid(body: &[u8], why: String) -> Response<Body> {
    refusal(StatusCode::BAD_REQUEST, id_of(body), ErrorData::invalid_request(why, None))
}

/// The response to a body that is too large to be read.
pub(super) fn too_large(bytes: usize) -> Response<Body> {
    let why = format!("the message has more than {bytes} bytes");
    refusal(StatusCode::PAYLOAD_TOO_LARGE, None, ErrorData::invalid_request(why, None))
}

/// The service's response, with a JSON-RPC body where the service refused `request` in plain text.
pub(super) async fn readable<B>(response: Response<B>, request: &[u8]) -> Response<Body>
where
    B: axum::body::HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let status = response.status();
    let plain =
        response.headers().get(CONTENT_TYPE).is_none_or(|kind| kind.as_bytes().starts_with(b"text/plain"));
    if !status.is_client_error() || !plain {
        return response.map(Body::new);
    }
    let (parts, body) = response.into_parts();
    // The service's own texts are short; without them the status is still correct.
    let text = Limited::new(body, TEXT_BYTES).collect().await.map(http_body_util::Collected::to_bytes);
    let text = text.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let (status, error) = match text.strip_prefix(UNREADABLE) {
        Some(why) => (StatusCode::BAD_REQUEST, unreadable(request, why)),
        None => (status, ErrorData::invalid_request(text, None)),
    };
    let mut refused = refusal(status, id_of(request), error);
    if let Some(methods) = parts.headers.get(ALLOW) {
        refused.headers_mut().insert(ALLOW, methods.clone());
    }
    refused
}

/// The error for a body that is not a message, with the texts of [`lines`](super::super::lines).
fn unreadable(body: &[u8], why: &str) -> ErrorData {
    match serde_json::from_slice::<Value>(body) {
        Err(error) => ErrorData::parse_error(not_json(&error), None),
        Ok(Value::Array(_)) => {
            ErrorData::invalid_request("batches are not supported: send one message per request", None)
        }
        Ok(_) => ErrorData::invalid_request(format!("not a message of the protocol: {why}"), None),
    }
}

/// The id of a request, if it is readable.
fn id_of(body: &[u8]) -> Option<RequestId> {
    let message: Value = serde_json::from_slice(body).ok()?;
    serde_json::from_value(message.get("id")?.clone()).ok()
}

fn refusal(status: StatusCode, id: Option<RequestId>, error: ErrorData) -> Response<Body> {
    let body = serde_json::to_vec(&ErrorMessage::new(id, error)).unwrap_or_default();
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
