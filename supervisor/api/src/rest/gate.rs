//! Checks of every request before its handler: the host name, the origin, the caller. Adds an id to every response and writes
//! the log.

use super::auth::{self, RestPeer};
use super::envelope::{RefusalCode, RestError};
use super::memory::{self, RequestMemory};
use super::representation::Accepted;
use super::{API, App, PREFIX, sse, ui};
use crate::mcp;
use axum::Router;
use axum::body::Body;
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use axum::response::IntoResponse as _;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use tracing::Instrument as _;
use vm_system_ops::{ApiRefusal, Caller};
use vm_system_protocol::egress::FROM_SCRIPT;
use vm_system_runtime::shares::Share;

/// Longest request id that is accepted from a client (bytes).
const REQUEST_ID_BYTES: usize = 128;
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Facts about a request, for the audit log.
#[derive(Default)]
struct Seen {
    caller: OnceLock<Caller>,
    memory: OnceLock<RequestMemory>,
    reached: VerbReached,
}

/// Set when a request has started a verb, whose refusals the verb handler records.
#[derive(Clone, Default)]
pub(super) struct VerbReached(Arc<AtomicBool>);

impl VerbReached {
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Handles one request.
pub(super) async fn handle(
    app: &Arc<App>,
    routes: &TowerToHyperService<Router>,
    (peer, slot): (&RestPeer, &Share),
    request: Request<Body>,
) -> Response<Body> {
    let begin = Instant::now();
    let id = request_id(request.headers());
    let (method, path) = (request.method().clone(), shown(request.uri()));
    let span = tracing::info_span!("request", id = id.to_str().unwrap_or_default());
    async move {
        let seen = Seen::default();
        let accepted = Accepted::new(&request);
        let response = match pass(app, routes, (peer, slot), request, &seen).await {
            Ok(response) => response,
            Err(problem) => problem.into_response(),
        };
        let memory = seen.memory.get().cloned();
        if let Some(refusal) = refusal(&method, &path, peer, seen, &response) {
            app.verbs.refused(refusal).await;
        }
        let mut response = accepted.form(response).await;
        if let Some(memory) = memory {
            response = memory::reserved(&memory.reply, response).unwrap_or_else(RestError::into_response);
        }
        log(&method, &path, &response, begin);
        let headers = response.headers_mut();
        headers.insert(REQUEST_ID, id);
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if !headers.contains_key(header::CACHE_CONTROL) {
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        response
    }
    .instrument(span)
    .await
}

/// Whether a path needs no token: the files of a web UI.
pub(super) fn is_public(path: &str) -> bool {
    path != mcp::http::PATH && path != "/api" && !path.starts_with("/api/")
}

async fn pass(
    app: &Arc<App>,
    routes: &TowerToHyperService<Router>,
    (peer, slot): (&RestPeer, &Share),
    mut request: Request<Body>,
    seen: &Seen,
) -> Result<Response<Body>, RestError> {
    if request.headers().contains_key(FROM_SCRIPT) {
        // Before the caller is looked up: over loopback that would be the script's user. Also with a token, and for every path.
        return Err(RestError::forbidden(
            "a script of vm-system sent this request; a daemon takes none from scripts, which would act as their user",
        ));
    }
    let limit = app.options.limits.head_bytes;
    if head_bytes(&request) > limit {
        // The parser's buffer may grow beyond its limit.
        let why = format!("target and fields of the request have more than {limit} bytes");
        return Err(RestError::request(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, why));
    }
    let authority = authority(request.headers(), request.uri())?;
    if let Some(server) = peer.tcp_server() {
        let host = authority
            .ok_or_else(|| RestError::request(StatusCode::BAD_REQUEST, "the header Host is missing"))?;
        if !is_known(host, server, &app.options.allowed_hosts) {
            return Err(RestError::forbidden(
                "unknown host name of this service (the operator lists names and addresses in `allowed_hosts`)",
            ));
        }
    }
    let path = request.uri().path();
    same_origin(request.headers(), authority, &app.options.allowed_origins, is_public(path))?;
    if app.state.closing.is_cancelled() {
        return Err(RestError::stopping());
    }
    if path == mcp::http::PATH {
        let caller = auth::caller(app, (peer, slot), request.headers()).await?;
        let _ = seen.memory.set(RequestMemory::new(&app.state.memory, caller.holder()));
        tracing::debug!(owner = %caller.owner, "agent");
        let removed = app.options.tokens.removed(&caller);
        return Ok(sse::ended_by(removed, super::mcp::answer(app, caller, request).await?));
    }
    if is_public(path) {
        return ui::answer(app.options.ui.as_ref(), &request.into_parts().0).await;
    }
    let caller = auth::caller(app, (peer, slot), request.headers()).await?;
    if !path.starts_with(PREFIX) {
        return Err(RestError::no_route());
    }
    tracing::debug!(owner = %caller.owner, "caller");
    let _ = seen.caller.set(caller.clone());
    let memory = RequestMemory::new(&app.state.memory, caller.holder());
    let _ = seen.memory.set(memory.clone());
    request.extensions_mut().insert(memory);
    let removed = app.options.tokens.removed(&caller);
    request.extensions_mut().insert(caller);
    request.extensions_mut().insert(seen.reached.clone());
    if *request.method() == Method::HEAD && !request.headers().contains_key(header::UPGRADE) {
        // The router would drop the body, from which the headers are made. It is not sent in a response to HEAD. A connection is
        // upgraded by GET only.
        *request.method_mut() = Method::GET;
    }
    match routes.call(request).await {
        Ok(response) => Ok(sse::ended_by(removed, response)),
        Err(never) => match never {},
    }
}

/// About what a request has in front of its body (bytes).
fn head_bytes(request: &Request<Body>) -> usize {
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    let fields = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    fields.fold(target, |sum, field| sum + field)
}

/// The client's request id if it is valid, else a new one.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    let sane = |id: &&HeaderValue| {
        let bytes = id.as_bytes();
        (1..=REQUEST_ID_BYTES).contains(&bytes.len())
            && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(byte))
    };
    let from_client = headers.get(REQUEST_ID).filter(sane).cloned();
    from_client.unwrap_or_else(|| {
        let id = uuid::Uuid::now_v7().to_string();
        // A UUID has hexadecimal digits and hyphens only.
        HeaderValue::from_str(&id).unwrap_or(HeaderValue::from_static("none"))
    })
}

/// The host name in the request: from an absolute target, else from the only Host header.
fn authority<'a>(headers: &'a HeaderMap, uri: &'a Uri) -> Result<Option<&'a str>, RestError> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts.next();
    if hosts.next().is_some() {
        return Err(RestError::request(StatusCode::BAD_REQUEST, "the header Host is given twice"));
    }
    let named = host.map(HeaderValue::to_str).transpose();
    let named =
        named.map_err(|_| RestError::request(StatusCode::BAD_REQUEST, "the header Host is not text"))?;
    Ok(uri.authority().map(axum::http::uri::Authority::as_str).or(named))
}

/// Prevents DNS rebinding: a page of another origin can make its own host name resolve to this listener, but neither `localhost`
/// nor an address; an address of another machine is foreign too. `server` is our address of this connection.
fn is_known(authority: &str, server: IpAddr, allowed: &[String]) -> bool {
    let Some(host) = host_of(authority) else { return false };
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    match host.parse::<IpAddr>() {
        Ok(address) => {
            let address = address.to_canonical();
            address.is_loopback()
                || address == server.to_canonical()
                || allowed.iter().any(|known| known.parse().is_ok_and(|known: IpAddr| known == address))
        }
        Err(_) => host == "localhost" || allowed.contains(&host),
    }
}

/// The host of `host[:port]` (RFC 9110, section 7.2; RFC 3986, section 3.2.2); `None` for anything else, a user name included.
fn host_of(authority: &str) -> Option<&str> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').filter(|(host, _)| host.parse::<Ipv6Addr>().is_ok())?,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let port = if port.is_empty() { port } else { port.strip_prefix(':')? };
    port.bytes().all(|byte| byte.is_ascii_digit()).then_some(host)
}

/// A browser sends the origin of the page that makes the request, and without it at least whether the page is of the same origin
/// (`Sec-Fetch-Site`, W3C Fetch Metadata); only pages of this listener and of the allowed origins are accepted: a development
/// server that passes requests on does not change their origin. The files of a web UI may be linked to.
fn same_origin(
    headers: &HeaderMap,
    authority: Option<&str>,
    allowed: &[String],
    is_public: bool,
) -> Result<(), RestError> {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let accepted = if let Some(origin) = origins.next() {
        let page = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, page)| page);
        let ours = match (page, authority) {
            (Some(page), Some(authority)) => page.eq_ignore_ascii_case(authority),
            _ => false,
        };
        let is_allowed =
            || allowed.iter().any(|allowed| origin.as_bytes().eq_ignore_ascii_case(allowed.as_bytes()));
        (ours || is_allowed()) && origins.next().is_none()
    } else {
        let mut sites = headers.get_all(SEC_FETCH_SITE).iter();
        is_public || sites.all(|site| site == "same-origin" || site == "none")
    };
    if accepted {
        Ok(())
    } else {
        Err(RestError::forbidden(
            "requests from pages of another origin are refused (the operator lists origins in `allowed_origins` of `[http]`)",
        ))
    }
}

/// The audit log's entry for a refusal of the listener: a request without a valid caller, or a change that started no verb.
fn refusal(
    method: &Method,
    path: &str,
    peer: &RestPeer,
    seen: Seen,
    response: &Response<Body>,
) -> Option<ApiRefusal> {
    let RefusalCode(code) = *response.extensions().get::<RefusalCode>()?;
    let status = response.status();
    let (concerns, from) = match seen.caller.get() {
        Some(_) => (!method.is_safe() && !seen.reached.0.load(Ordering::Relaxed), String::new()),
        None => ([StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status), peer.to_string()),
    };
    let what = format!("{method} {path}");
    let owner = seen.caller.into_inner().map(|caller| caller.owner);
    (concerns && status.is_client_error()).then_some(ApiRefusal { owner, api: API, what, from, code })
}

fn log(method: &Method, path: &str, response: &Response<Body>, begin: Instant) {
    let status = response.status().as_u16();
    let code = response.extensions().get::<RefusalCode>().map(|refused| refused.0);
    let us = u64::try_from(begin.elapsed().as_micros()).unwrap_or(u64::MAX);
    if status >= 400 || !method.is_safe() {
        tracing::info!(%method, path, status, code, us, "response");
    } else {
        tracing::debug!(%method, path, status, us, "response");
    }
}

/// The path for the log, at most 200 characters.
fn shown(uri: &Uri) -> String {
    uri.path().chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_addresses_localhost_and_allowed_hosts_are_accepted() {
        let allowed = ["vm.example", "192.0.2.7", "2001:db8::7"].map(str::to_owned);
        let server = IpAddr::from([10, 0, 0, 1]);
        for good in [
            "localhost",
            "LOCALHOST:3210",
            "127.0.0.1",
            "127.0.0.1:1",
            "[::1]:3210",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "vm.example:80",
            "localhost.",
            "localhost:",
            "10.0.0.1:80",
            "[::ffff:10.0.0.1]",
            "192.0.2.7",
            "[2001:db8::7]:80",
        ] {
            assert!(is_known(good, server, &allowed), "{good}");
        }
        for bad in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "[evil]:1",
            "[localhost]",
            "vm.example.evil",
            ":80",
            "10.0.0.2",
            "0.0.0.0",
            "[::]",
            "192.0.2.8",
            "[2001:db8::8]",
            "localhost:1@evil",
            "localhost:1@evil:80",
            "localhost@evil",
            "evil:@localhost",
            "[::1]evil",
            "[::1]:1@evil",
            "[::1",
            "localhost:80:80",
            "::1",
        ] {
            assert!(!is_known(bad, server, &allowed), "{bad}");
        }
    }

    #[test]
    fn only_pages_of_the_same_origin_are_accepted() {
        let with = |fields: &[(&'static str, &'static str)]| {
            let fields = fields
                .iter()
                .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
            fields.collect::<HeaderMap>()
        };
        let host = Some("localhost:3210");
        let (origin, site) = (|value| ("origin", value), |value| ("sec-fetch-site", value));
        let ours = origin("http://localhost:3210");
        for good in [&[][..], &[ours], &[site("none")], &[site("same-origin")], &[ours, site("cross-site")]] {
            assert!(same_origin(&with(good), host, &[], false).is_ok(), "{good:?}");
        }
        let good = "http://localhost:5173";
        let allowed = [good.to_owned()];
        for bad in [
            "null",
            "http://evil.example",
            "http://localhost",
            "localhost:3210",
            "",
            "https://localhost:5173",
            "http://localhost:51730",
            "http://localhost:5173/",
        ] {
            for is_public in [false, true] {
                assert!(same_origin(&with(&[origin(bad)]), host, &allowed, is_public).is_err(), "{bad}");
            }
        }
        for bad in ["cross-site", "same-site", ""] {
            assert!(same_origin(&with(&[site(bad)]), host, &allowed, false).is_err(), "{bad}");
            assert!(same_origin(&with(&[site(bad)]), host, &allowed, true).is_ok(), "a link to the web UI");
        }
        assert!(same_origin(&with(&[origin("http://localhost")]), None, &[], false).is_err());
        for good in ["http://localhost:5173", "HTTP://Localhost:5173"] {
            assert!(same_origin(&with(&[origin(good)]), host, &allowed, false).is_ok(), "{good}");
        }
        assert!(same_origin(&with(&[origin(good), origin(good)]), host, &allowed, false).is_err());
    }

    #[test]
    fn a_valid_request_id_of_the_client_is_used() {
        let with = |id: &'static [u8]| {
            let mut headers = HeaderMap::new();
            headers.insert(REQUEST_ID, HeaderValue::from_bytes(id).expect("a header"));
            request_id(&headers)
        };
        assert_eq!(with(b"abc-123_X"), "abc-123_X");
        for insane in [&b""[..], b"a b", b"\xff", b"a\"b"] {
            assert_eq!(with(insane).len(), 36);
        }
        assert_eq!(request_id(&HeaderMap::new()).len(), 36);
    }
}
