//! The form in which a response is sent: 304 for an object that the client has, gzip for a large body.

use axum::body::Body;
use axum::http::header::{self, HeaderMap, HeaderValue};
use axum::http::{Method, Request, Response, StatusCode};
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::BodyExt as _;
use sha2::{Digest as _, Sha256};
use std::io::Write as _;
use vm_system_spawn::libraries::hex;

/// Shorter bodies are not compressed (bytes).
const GZIP_BYTES: usize = 16 << 10;
/// Characters of an entity tag.
const TAG_CHARS: usize = 32;

/// The forms that a request accepts.
pub(super) struct Accepted {
    /// GET, or HEAD, whose response has the same headers.
    reads: bool,
    gzip: bool,
    known: Vec<HeaderValue>,
}

impl Accepted {
    pub(super) fn new(request: &Request<Body>) -> Self {
        let headers = request.headers();
        Self {
            reads: [Method::GET, Method::HEAD].contains(request.method()),
            gzip: accepts_gzip(headers),
            known: headers.get_all(header::IF_NONE_MATCH).iter().cloned().collect(),
        }
    }

    /// The response in that form. A stream is sent as it is.
    pub(super) async fn form(self, response: Response<Body>) -> Response<Body> {
        let (mut parts, body) = response.into_parts();
        let is_whole = http_body::Body::size_hint(&body).exact().is_some_and(|length| length > 0);
        if !is_whole || parts.status.is_redirection() {
            return Response::from_parts(parts, body);
        }
        let Ok(bytes) = body.collect().await else {
            parts.status = StatusCode::INTERNAL_SERVER_ERROR;
            return Response::from_parts(parts, Body::empty());
        };
        let bytes = bytes.to_bytes();
        // The router has set it; it is set again for the body that is sent.
        parts.headers.remove(header::CONTENT_LENGTH);
        let is_object = bytes.starts_with(b"{") && is_json(&parts.headers);
        if self.reads && parts.status == StatusCode::OK && is_object {
            let mut tag = hex(&Sha256::digest(&bytes).into());
            tag.truncate(TAG_CHARS);
            // A weak tag: the compressed body is the same object.
            if let Ok(tag) = HeaderValue::from_str(&format!("W/\"{tag}\"")) {
                let is_known = is_known(&self.known, &tag);
                parts.headers.insert(header::ETAG, tag);
                if is_known {
                    parts.status = StatusCode::NOT_MODIFIED;
                    parts.headers.remove(header::CONTENT_TYPE);
                    return Response::from_parts(parts, Body::empty());
                }
            }
        }
        if bytes.len() < GZIP_BYTES || !is_text(&parts.headers) {
            return Response::from_parts(parts, Body::from(bytes));
        }
        parts.headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        if !self.gzip {
            return Response::from_parts(parts, Body::from(bytes));
        }
        let original = bytes.clone();
        let compressed = tokio::task::spawn_blocking(move || gzip(&bytes)).await;
        let body = match compressed {
            Ok(Ok(compressed)) => {
                parts.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
                Body::from(compressed)
            }
            // The body is sent as it is.
            _ => Body::from(original),
        };
        Response::from_parts(parts, body)
    }
}

/// Whether a client has the entity with this tag (RFC 9110, section 13.1.2: tags are compared weakly).
pub(super) fn is_known<'a>(known: impl IntoIterator<Item = &'a HeaderValue>, tag: &HeaderValue) -> bool {
    let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let Ok(tag) = tag.to_str() else { return false };
    let lists = known.into_iter().filter_map(|list| list.to_str().ok());
    let mut tags = lists.flat_map(|list| list.split(','));
    tags.any(|known| known.trim() == "*" || opaque(known) == opaque(tag))
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let fields = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|field| field.to_str().ok());
    let mut codings = fields.flat_map(|field| field.split(','));
    codings.any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let weight = parts.find_map(|part| part.strip_prefix("q=")).unwrap_or("1");
        is_gzip && weight.parse::<f32>().is_ok_and(|weight| weight > 0.0)
    })
}

fn kind(headers: &HeaderMap) -> &str {
    headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default()
}

fn is_json(headers: &HeaderMap) -> bool {
    kind(headers) == "application/json"
}

/// Whether a body of this type becomes smaller.
fn is_text(headers: &HeaderMap) -> bool {
    let kind = kind(headers);
    is_json(headers) || kind.starts_with("text/") || ["image/svg+xml", "application/wasm"].contains(&kind)
}

fn gzip(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(fields: &[(&str, &str)]) -> Request<Body> {
        let mut request = Request::new(Body::empty());
        for (name, value) in fields {
            let name = header::HeaderName::from_bytes(name.as_bytes()).expect("a name");
            request.headers_mut().append(name, HeaderValue::from_str(value).expect("a value"));
        }
        request
    }

    fn response(kind: &'static str, body: &str) -> Response<Body> {
        let mut response = Response::new(Body::from(body.to_owned()));
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        response
    }

    #[tokio::test]
    async fn a_known_object_is_304_and_a_list_has_no_tag() {
        let first = Accepted::new(&request(&[])).form(response("application/json", "{}")).await;
        let tag = first.headers()[header::ETAG].to_str().expect("text").to_owned();
        let strong = tag.trim_start_matches("W/");
        for known in [tag.as_str(), strong, "*", &format!("\"other\", {tag}")] {
            let accepted = Accepted::new(&request(&[("if-none-match", known)]));
            let again = accepted.form(response("application/json", "{}")).await;
            assert_eq!(again.status(), StatusCode::NOT_MODIFIED, "{known}");
            assert!(again.into_body().collect().await.expect("a body").to_bytes().is_empty());
        }
        let accepted = Accepted::new(&request(&[("if-none-match", &tag)]));
        assert_eq!(accepted.form(response("application/json", "{ }")).await.status(), StatusCode::OK);
        let list = Accepted::new(&request(&[])).form(response("application/json", "[]")).await;
        assert!(!list.headers().contains_key(header::ETAG));
    }

    #[tokio::test]
    async fn large_texts_are_compressed_for_clients_that_accept_it() {
        let long = format!("[\"{}\"]", "x".repeat(GZIP_BYTES));
        let sent = |field: &'static str, kind: &'static str, body: String| async move {
            let response =
                Accepted::new(&request(&[("accept-encoding", field)])).form(response(kind, &body)).await;
            let is_gzip = response.headers().get(header::CONTENT_ENCODING).is_some();
            let bytes = response.into_body().collect().await.expect("a body").to_bytes();
            let mut text = String::new();
            if is_gzip {
                let mut decoder = flate2::read::GzDecoder::new(&bytes[..]);
                std::io::Read::read_to_string(&mut decoder, &mut text).expect("gzip");
                assert_eq!(text, body);
                assert!(bytes.len() < body.len() / 4);
            }
            is_gzip
        };
        for field in ["gzip", "br, GZIP;q=0.5", "deflate, gzip;q=1.0"] {
            assert!(sent(field, "application/json", long.clone()).await, "{field}");
        }
        for field in ["", "br", "gzip;q=0", "identity"] {
            assert!(!sent(field, "application/json", long.clone()).await, "{field}");
        }
        assert!(!sent("gzip", "application/json", "[1]".to_owned()).await);
        assert!(!sent("gzip", "image/png", long.clone()).await);
    }
}
