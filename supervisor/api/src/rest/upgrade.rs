//! The control API over an HTTP connection: `GET /control` with `Connection: Upgrade` and `Upgrade: vm-system-control/N` (RFC 9110,
//! section 7.8). After the response 101 the connection has the frames of the control socket. Its caller is the request's; the verbs
//! of a caller whose token is removed meanwhile are refused.
//!
//! For programs only: a browser cannot send these fields, and a request that has a page's origin is refused, also of this API's
//! own pages.

use super::endpoint::Switched;
use super::envelope::{RestError, RestResult};
use super::{App, RestOptions, TokenBook};
use crate::control::{ServerState, UpgradedClients};
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, Response, StatusCode, Version};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use std::sync::Arc;
use vm_system_ops::{ApiRefusal, Caller, VerbHandler, VerbRequest};
use vm_system_protocol::control::{
    CONTROL_PROTOCOL, ErrorCode, OpError, Reply, UPGRADE_NAME, UPGRADE_PROTOCOL,
};
use vm_system_runtime::shares::Share;
use vm_system_store::BoxFuture;

/// Fields that browsers send and programs do not.
const OF_PAGES: [HeaderName; 4] = [
    header::ORIGIN,
    HeaderName::from_static("sec-fetch-site"),
    HeaderName::from_static("sec-fetch-mode"),
    header::SEC_WEBSOCKET_KEY,
];

/// A connection that is the control API's after the response; an extension of the response.
#[derive(Clone)]
pub(super) struct Upgrading {
    caller: Caller,
    connection: OnUpgrade,
}

/// The control API for connections of this one.
pub(super) fn clients(
    verbs: &Arc<dyn VerbHandler>,
    options: &RestOptions,
    state: &ServerState,
) -> UpgradedClients {
    let known = KnownCallers { verbs: Arc::clone(verbs), tokens: Arc::clone(&options.tokens) };
    UpgradedClients::new(Arc::new(known), state.clone())
}

pub(super) async fn begin(mut request: Request) -> RestResult<(), Switched> {
    let headers = request.headers();
    if OF_PAGES.iter().any(|field| headers.contains_key(field)) {
        return Err(RestError::forbidden("the control protocol is not for pages in a browser"));
    }
    if request.method() != Method::GET {
        return Err(RestError::method());
    }
    offered(headers)?;
    let invalid = |why: &str| Err(RestError::request(StatusCode::BAD_REQUEST, why));
    if request.version() != Version::HTTP_11 {
        return invalid("an upgrade needs HTTP/1.1");
    }
    if !http_body::Body::is_end_stream(request.body()) {
        return invalid("an upgrade has no body");
    }
    let caller = request.extensions().get::<Caller>().cloned();
    let connection = request.extensions_mut().remove::<OnUpgrade>();
    let (Some(caller), Some(connection)) = (caller, connection) else {
        return Err(RestError::internal("an upgrade without a caller or a connection"));
    };
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    add_fields(response.headers_mut());
    response.extensions_mut().insert(Upgrading { caller, connection });
    Ok(response.into())
}

/// The fields with which a response names this protocol.
pub(super) fn add_fields(headers: &mut HeaderMap) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static(UPGRADE_PROTOCOL));
}

/// Refuses a request that does not offer this version of the protocol.
fn offered(headers: &HeaderMap) -> Result<(), RestError> {
    let is_upgrade = values(headers, header::CONNECTION).any(|value| value.eq_ignore_ascii_case("upgrade"));
    let ours = values(headers, header::UPGRADE).filter_map(|protocol| {
        let (name, version) = protocol.split_once('/').unwrap_or((protocol, ""));
        name.eq_ignore_ascii_case(UPGRADE_NAME).then_some(version)
    });
    let versions: Vec<&str> = ours.collect();
    let own = CONTROL_PROTOCOL.to_string();
    if versions.is_empty() || !is_upgrade {
        return Err(RestError::other_protocol(format!(
            "this resource is an upgrade: Connection: Upgrade, Upgrade: {UPGRADE_PROTOCOL}"
        )));
    }
    if versions.contains(&own.as_str()) {
        return Ok(());
    }
    let theirs: String = versions.join(", ").chars().take(100).collect();
    Err(RestError::other_protocol(format!(
        "the supervisor (version {}) uses control protocol {own}, the client {theirs}",
        env!("CARGO_PKG_VERSION")
    )))
}

/// The members of a list of tokens in header fields.
fn values(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    let fields = headers.get_all(name).into_iter().filter_map(|field| field.to_str().ok());
    fields.flat_map(|field| field.split(',').map(str::trim))
}

/// Serves the control API on a connection whose response 101 is sent.
pub(super) async fn serve(app: &App, upgrading: Upgrading, slot: Arc<Share>) {
    // A replaced token is still known by its name.
    let removed = app.options.tokens.removed(&upgrading.caller);
    match upgrading.connection.await {
        Ok(stream) => tokio::select! {
            () = app.upgraded.serve(TokioIo::new(stream), upgrading.caller, slot) => {}
            () = removed => tracing::debug!("a connection is closed: its token was removed or replaced"),
        },
        Err(error) => tracing::debug!(%error, "a connection failed"),
    }
}

/// Refuses the verbs of callers whose token was removed.
struct KnownCallers {
    verbs: Arc<dyn VerbHandler>,
    tokens: Arc<TokenBook>,
}

impl VerbHandler for KnownCallers {
    fn handle(&self, request: VerbRequest) -> BoxFuture<'_, Result<Reply, OpError>> {
        if self.tokens.knows(&request.caller) {
            return self.verbs.handle(request);
        }
        let removed = OpError::new(ErrorCode::NotPermitted, "the token of this caller was removed");
        Box::pin(std::future::ready(Err(removed)))
    }

    fn refused(&self, refusal: ApiRefusal) -> BoxFuture<'_, ()> {
        self.verbs.refused(refusal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(connection: &str, protocol: &str) -> Result<(), RestError> {
        let value = |text: &str| HeaderValue::from_str(text).expect("a value");
        let mut headers = HeaderMap::new();
        headers.insert(header::CONNECTION, value(connection));
        headers.insert(header::UPGRADE, value(protocol));
        offered(&headers)
    }

    #[test]
    fn an_upgrade_names_this_protocol_and_its_version_among_others() {
        let (own, version) = (UPGRADE_PROTOCOL, CONTROL_PROTOCOL);
        let (upper, listed) = (own.to_uppercase(), format!("websocket, {UPGRADE_NAME}/6, {own}"));
        for (connection, protocol) in
            [("upgrade", own), ("keep-alive, Upgrade", &upper), ("Upgrade", &listed)]
        {
            assert!(judged(connection, protocol).is_ok(), "{connection} {protocol}");
        }
        let (padded, next) =
            (format!("{UPGRADE_NAME}/0{version}"), format!("{UPGRADE_NAME}/{}", version + 1));
        for (connection, protocol) in [
            ("keep-alive", own),
            ("upgrade", "websocket"),
            ("upgrade", UPGRADE_NAME),
            ("upgrade", &padded),
            ("upgrade", &next),
            ("upgraded", own),
        ] {
            assert!(judged(connection, protocol).is_err(), "{connection} {protocol}");
        }
        assert!(offered(&HeaderMap::new()).is_err());
    }
}
