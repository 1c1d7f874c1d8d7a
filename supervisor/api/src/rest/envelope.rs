//! Responses: JSON, and the envelope of every error: `{"error":{"code","message","details"?}}`.

use super::endpoint::Whole;
use super::shapes::Object;
use super::upgrade;
use axum::body::Body;
use axum::http::header::{self, HeaderValue};
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse;
use schemars::JsonSchema;
use serde::Serialize;
use std::marker::PhantomData;
use vm_system_protocol::control::{ErrorCode, OpError};
use vm_system_protocol::json::JsonText;

/// The result of a handler: a response with a value of a type, in a form.
pub(super) type RestResult<T, F = Whole> = Result<Answer<T, F>, RestError>;

/// A response whose body is a `T` as JSON.
pub(super) struct Answer<T, F = Whole> {
    pub(super) response: Response<Body>,
    value: PhantomData<fn() -> (T, F)>,
}

impl<T, F> From<Response<Body>> for Answer<T, F> {
    fn from(response: Response<Body>) -> Self {
        Self { response, value: PhantomData }
    }
}

impl<T, F> IntoResponse for Answer<T, F> {
    fn into_response(self) -> Response<Body> {
        self.response
    }
}

/// The status of a response about something that was done.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(super) enum DoneStatus {
    Ok,
}

/// Value of `Retry-After` (seconds).
const RETRY_AFTER_S: &str = "1";

/// A refused request.
#[derive(Debug)]
pub(super) struct RestError {
    status: StatusCode,
    code: &'static str,
    message: String,
    details: Option<JsonText>,
    /// Whether the response has `WWW-Authenticate`.
    challenge: bool,
}

impl RestError {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), details: None, challenge: false }
    }

    pub(super) fn is_too_large(&self) -> bool {
        self.status == StatusCode::PAYLOAD_TOO_LARGE
    }

    /// 400 `VALIDATION_ERROR`: a field, an id or a parameter.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, ErrorCode::ValidationError.as_str(), message)
    }

    /// `INVALID_REQUEST`: the request as a whole; 400, 408, 413 or 415.
    pub(super) fn request(status: StatusCode, message: impl Into<String>) -> Self {
        Self::new(status, ErrorCode::InvalidRequest.as_str(), message)
    }

    /// 404 `NOT_FOUND`.
    pub(super) fn no_route() -> Self {
        let message = "no such resource; /api/v1/openapi.json lists all of them";
        Self::new(StatusCode::NOT_FOUND, ErrorCode::NotFound.as_str(), message)
    }

    /// 405 `METHOD_NOT_ALLOWED`; the allowed ones are in the header `Allow`.
    pub(super) fn method() -> Self {
        let message = "this resource does not support the method; see the header Allow";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", message)
    }

    /// 401 `UNAUTHORIZED`.
    pub(super) fn unauthorized(message: impl Into<String>) -> Self {
        let mut problem = Self::new(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", message);
        problem.challenge = true;
        problem
    }

    /// 426 `INVALID_REQUEST`, with the protocol that this API has.
    pub(super) fn other_protocol(message: impl Into<String>) -> Self {
        Self::request(StatusCode::UPGRADE_REQUIRED, message)
    }

    /// 403 `NOT_PERMITTED`.
    pub(super) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, ErrorCode::NotPermitted.as_str(), message)
    }

    /// 503 `SHUTTING_DOWN`.
    pub(super) fn stopping() -> Self {
        let message = "the supervisor is stopping";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::ShuttingDown.as_str(), message)
    }

    /// 500 `INTERNAL`; the details go to the log, not to the client.
    pub(super) fn internal(detail: &str) -> Self {
        tracing::error!(detail, "a request failed by a bug");
        let message = "the supervisor failed at this request; its log has the details under the request's id";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, ErrorCode::Internal.as_str(), message)
    }
}

impl From<OpError> for RestError {
    fn from(error: OpError) -> Self {
        let OpError { code, message, details, hint } = error;
        if code == ErrorCode::Internal {
            return Self::internal(&message);
        }
        let message = match hint {
            // This hint is the source line with a caret, which is also in the details.
            Some(_) if code == ErrorCode::CompileError => message,
            Some(hint) => format!("{message} ({hint})"),
            None => message,
        };
        let status = StatusCode::from_u16(code.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self { status, code: code.as_str(), message, details, challenge: false }
    }
}

/// The error of every refused request.
#[derive(Serialize, JsonSchema)]
pub(super) struct Envelope<'a> {
    error: Refusal<'a>,
}

/// Why a request was refused.
#[derive(Serialize, JsonSchema)]
struct Refusal<'a> {
    /// The error code, for programs to match on.
    #[schemars(extend("examples" = ["VALIDATION_ERROR"]))]
    code: &'a str,
    /// The error in words, for people; may change.
    message: &'a str,
    /// Data of the error, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Object>")]
    details: Option<&'a JsonText>,
}

impl IntoResponse for RestError {
    fn into_response(self) -> Response<Body> {
        let Self { status, code, message, details, challenge } = self;
        let bytes =
            |details| serde_json::to_vec(&Envelope { error: Refusal { code, message: &message, details } });
        // Invalid JSON in the details is a bug; the code and the message are sent without them.
        let body = bytes(details.as_ref()).or_else(|_| bytes(None)).unwrap_or_default();
        let mut response = json_bytes(status, body);
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_S));
        }
        if status == StatusCode::UPGRADE_REQUIRED {
            upgrade::add_fields(response.headers_mut());
        }
        if challenge {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response.extensions_mut().insert(RefusalCode(code));
        response
    }
}

/// The code of a refusal, for the log.
#[derive(Debug, Clone, Copy)]
pub(super) struct RefusalCode(pub(super) &'static str);

/// A value as compact JSON.
pub(super) fn json<T: Serialize>(status: StatusCode, value: &T) -> RestResult<T> {
    match serde_json::to_vec(value) {
        Ok(bytes) => Ok(json_bytes(status, bytes).into()),
        Err(error) => Err(RestError::internal(&format!("a response cannot be written: {error}"))),
    }
}

/// 200 with a value.
pub(super) fn ok<T: Serialize>(value: &T) -> RestResult<T> {
    json(StatusCode::OK, value)
}

/// 201 with a value.
pub(super) fn created<T: Serialize>(value: &T) -> RestResult<T> {
    json(StatusCode::CREATED, value)
}

fn json_bytes(status: StatusCode, bytes: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_the_verbs_has_an_http_status() {
        for code in ErrorCode::ALL {
            let problem = RestError::from(OpError::new(*code, "text").with_hint("do this"));
            assert_eq!(problem.status.as_u16(), code.http_status());
            assert_eq!(problem.code, code.as_str());
        }
    }

    #[test]
    fn bug_is_reported_without_details() {
        let problem = RestError::from(OpError::new(ErrorCode::Internal, "SELECT secret FROM /host/path"));
        assert!(!problem.message.contains("SELECT"), "{}", problem.message);
        let hinted = RestError::from(OpError::new(ErrorCode::Conflict, "taken").with_hint("choose another"));
        assert_eq!(hinted.message, "taken (choose another)");
    }
}
