//! One exchange: builds the request, puts the secrets in, sends the body as it arrives, and reports the response piece by piece, no
//! faster than the supervisor takes it. Every limit ends the exchange.

use crate::address;
use crate::client::{self, OwnersClient, RequestBody};
use crate::failure::ExchangeFailure;
use crate::role;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, Request, Response, Version};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;
use vm_system_protocol::egress::{
    EgressRequest, EgressTerms, FROM_SCRIPT, FromEgress, HttpHeader, HttpProgress, SECRET, SecretValue,
};
use vm_system_protocol::limits::{HTTP_HEADER_BYTES, HTTP_HEADERS, HTTP_PIECE_BYTES};

/// Header fields about the connection, which is not the script's: they are left out.
const OF_CONNECTION: &[&str] = &["connection", "keep-alive", "proxy-connection", "transfer-encoding"];
/// Header fields that would make something else of a request: refused.
const UNSUPPORTED: &[&str] = &["expect", "te", "trailer", "upgrade", "http2-settings", "proxy-authorization"];

/// A piece of a request's body, and whether it is the last one.
pub type BodyPiece = (Vec<u8>, bool);

/// The supervisor's side of an exchange.
#[derive(Debug)]
pub struct ExchangeInput {
    /// The pieces of the body after the first one.
    pub pieces: mpsc::Receiver<BodyPiece>,
    /// One permit for each piece of the response that may be sent.
    pub credit: Arc<Semaphore>,
}

/// Reports of one exchange.
#[derive(Debug, Clone)]
pub struct Reports {
    pub exchange: u64,
    pub out: mpsc::Sender<FromEgress>,
}

impl Reports {
    fn report(&self, progress: HttpProgress) {
        role::report(&self.out, FromEgress::Progress { exchange: self.exchange, progress });
    }
}

/// Makes a request and reports its progress; the last report is `End` or `Failed`.
pub(crate) async fn run(
    client: OwnersClient,
    request: EgressRequest,
    input: ExchangeInput,
    reports: Reports,
) {
    let most = request.terms.timeout_ms;
    let exchange = exchange(&client, request, input, &reports);
    let result = timeout(Duration::from_millis(u64::from(most)), exchange).await.unwrap_or_else(|_| {
        Err(ExchangeFailure::limit(format!("the exchange took longer than {most} ms (timeout_ms)")))
    });
    reports.report(match result {
        Ok(()) => HttpProgress::End,
        Err(failure) => HttpProgress::Failed(failure.into()),
    });
}

async fn exchange(
    client: &OwnersClient,
    request: EgressRequest,
    input: ExchangeInput,
    reports: &Reports,
) -> Result<(), ExchangeFailure> {
    let (head_ms, most) = (request.terms.head_ms, request.terms.max_response_bytes);
    let built = build(request, input.pieces, reports)?;
    let sent = timeout(Duration::from_millis(u64::from(head_ms)), client::send(client, built)).await;
    let (response, allowance) = sent.map_err(|_| {
        let message = format!("no response within {head_ms} ms (headers_ms)");
        ExchangeFailure::new("UND_ERR_HEADERS_TIMEOUT", message)
    })??;
    let too_large = || {
        let message =
            format!("the body of the response is larger than {} KiB (max_response_kb)", most / 1024);
        ExchangeFailure::limit(message)
    };
    if response.body().size_hint().lower() > most {
        return Err(too_large());
    }
    reports.report(head(&response)?);
    let mut body: Incoming = response.into_body();
    let mut received = 0_u64;
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| allowance.failure().unwrap_or_else(|| ExchangeFailure::of_http(&error)))?;
        // Trailers are left out.
        let Ok(mut data) = frame.into_data() else { continue };
        received += data.len() as u64;
        if received > most {
            return Err(too_large());
        }
        while !data.is_empty() {
            let piece = data.split_to(data.len().min(HTTP_PIECE_BYTES));
            let credit = input.credit.acquire().await;
            credit.map_err(|_| ExchangeFailure::new("ECANCELED", "given up"))?.forget();
            allowance.body(piece.len());
            reports.report(HttpProgress::Data(piece.into()));
        }
    }
    Ok(())
}

fn head(response: &Response<Incoming>) -> Result<HttpProgress, ExchangeFailure> {
    if response.status().is_informational() {
        // The library takes 101 for the last response; no request asks for another protocol.
        return Err(ExchangeFailure::new("UND_ERR_SOCKET", "bad upgrade"));
    }
    let fields = response.headers();
    let bytes: usize = fields.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    // HTTP/2 has no limit of fields of its own.
    if bytes > HTTP_HEADER_BYTES || fields.len() > HTTP_HEADERS {
        let message = format!(
            "the header of the response has more than {HTTP_HEADER_BYTES} bytes or {HTTP_HEADERS} fields"
        );
        return Err(ExchangeFailure::new("UND_ERR_HEADERS_OVERFLOW", message));
    }
    let header = |(name, value): (&HeaderName, &HeaderValue)| HttpHeader {
        name: name.as_str().to_owned(),
        value: value.as_bytes().to_vec(),
    };
    Ok(HttpProgress::Head {
        status: response.status().as_u16(),
        reason: reason(response),
        headers: fields.iter().map(header).collect(),
        http2: response.version() == Version::HTTP_2,
    })
}

fn reason(response: &Response<Incoming>) -> String {
    if response.version() == Version::HTTP_2 {
        return String::new();
    }
    match response.extensions().get::<hyper::ext::ReasonPhrase>() {
        Some(reason) => reason.as_bytes().iter().take(200).map(|byte| char::from(*byte)).collect(),
        None => response.status().canonical_reason().unwrap_or_default().to_owned(),
    }
}

fn build(
    request: EgressRequest,
    pieces: mpsc::Receiver<BodyPiece>,
    reports: &Reports,
) -> Result<Request<RequestBody>, ExchangeFailure> {
    let EgressRequest { method, tls, host, port, target, headers, data, end, terms } = request;
    let invalid = |what: &str| ExchangeFailure::new("ERR_INVALID_ARG_VALUE", format!("{what} is not valid"));
    let may_be_near = address::may_be_near(&host, terms.reach);
    let scheme = if tls { "https" } else { "http" };
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let usual = if tls { 443 } else { 80 };
    let authority = if port == usual { host } else { format!("{host}:{port}") };
    let mut built = Request::new(body(data, end, pieces, &terms, reports)?);
    *built.method_mut() = Method::from_bytes(method.as_bytes()).map_err(|_| invalid("the method"))?;
    *built.uri_mut() = format!("{scheme}://{authority}{target}").parse().map_err(|_| invalid("the URL"))?;
    let mut left = HTTP_HEADER_BYTES;
    for HttpHeader { name, value } in headers {
        let name =
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid("the name of a header field"))?;
        if OF_CONNECTION.contains(&name.as_str()) || name == FROM_SCRIPT {
            continue;
        }
        if UNSUPPORTED.contains(&name.as_str()) {
            let message = format!("the header field {name} is not supported");
            return Err(ExchangeFailure::new("UND_ERR_NOT_SUPPORTED", message));
        }
        if name == hyper::header::HOST {
            if !value.eq_ignore_ascii_case(authority.as_bytes()) {
                let message = format!("the header field host must be that of the URL, {authority}");
                return Err(ExchangeFailure::denied(message));
            }
            continue;
        }
        if end && name == hyper::header::CONTENT_LENGTH {
            // The body is complete, so its length is known, whatever the script says.
            continue;
        }
        if name == hyper::header::CONTENT_LENGTH {
            // One that the HTTP library does not understand would be sent as it is, and the server could take the next request on the
            // connection for the body of this one.
            let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
            if !is_number || built.headers().contains_key(&name) {
                let message = "the header field content-length is not one number";
                return Err(ExchangeFailure::new("UND_ERR_INVALID_ARG", message));
            }
        }
        let value = with_secrets(&value, &terms.secrets, left)?;
        left = left.saturating_sub(value.len());
        let mut value =
            HeaderValue::from_bytes(&value).map_err(|_| invalid("the value of a header field"))?;
        value.set_sensitive(!terms.secrets.is_empty());
        built.headers_mut().append(name, value);
    }
    if may_be_near {
        built.headers_mut().insert(HeaderName::from_static(FROM_SCRIPT), HeaderValue::from_static("1"));
    }
    Ok(built)
}

/// The value with each `{secret:NAME}` replaced, of at most so many bytes.
fn with_secrets(value: &[u8], secrets: &[SecretValue], most: usize) -> Result<Vec<u8>, ExchangeFailure> {
    let Ok(text) = std::str::from_utf8(value) else { return Ok(value.to_vec()) };
    let mut parts = text.split(SECRET);
    let mut made = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let named = part.split_once('}');
        let found =
            named.and_then(|(name, rest)| Some((secrets.iter().find(|secret| secret.name == name)?, rest)));
        let Some((secret, rest)) = found else {
            return Err(ExchangeFailure::denied("a header field names a secret that was not granted"));
        };
        if made.len() + secret.value.len() + rest.len() > most {
            let message =
                format!("the header fields with their secrets have more than {HTTP_HEADER_BYTES} bytes");
            return Err(ExchangeFailure::limit(message));
        }
        made.push_str(&secret.value);
        made.push_str(rest);
    }
    Ok(made.into_bytes())
}

fn body(
    data: Vec<u8>,
    end: bool,
    pieces: mpsc::Receiver<BodyPiece>,
    terms: &EgressTerms,
    reports: &Reports,
) -> Result<RequestBody, ExchangeFailure> {
    let most = terms.max_request_bytes;
    let left = most.checked_sub(data.len() as u64).ok_or_else(|| too_large(most))?;
    if end {
        return Ok(Full::new(Bytes::from(data)).map_err(|never| match never {}).boxed_unsync());
    }
    let first = Some(Bytes::from(data)).filter(|data| !data.is_empty());
    Ok(PieceBody { first, pieces, ended: false, left, most, reports: reports.clone() }.boxed_unsync())
}

fn too_large(most: u64) -> ExchangeFailure {
    ExchangeFailure::limit(format!(
        "the body of the request is larger than {} KiB (max_request_kb)",
        most / 1024
    ))
}

/// A body that arrives piece by piece.
struct PieceBody {
    first: Option<Bytes>,
    pieces: mpsc::Receiver<BodyPiece>,
    ended: bool,
    /// Bytes that may follow.
    left: u64,
    most: u64,
    reports: Reports,
}

impl Body for PieceBody {
    type Data = Bytes;
    type Error = ExchangeFailure;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ExchangeFailure>>> {
        if let Some(first) = self.first.take() {
            self.reports.report(HttpProgress::Sent);
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        loop {
            if self.ended {
                return Poll::Ready(None);
            }
            let Some((data, end)) = std::task::ready!(self.pieces.poll_recv(cx)) else {
                let failure = ExchangeFailure::new("ECANCELED", "the body of the request was given up");
                return Poll::Ready(Some(Err(failure)));
            };
            self.ended = end;
            let Some(left) = self.left.checked_sub(data.len() as u64) else {
                return Poll::Ready(Some(Err(too_large(self.most))));
            };
            self.left = left;
            if !end {
                self.reports.report(HttpProgress::Sent);
            }
            if !data.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(data.into()))));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ended && self.first.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_put_into_values_and_others_are_refused() {
        let secrets = [SecretValue { name: "A".to_owned(), value: "x{secret:B}".to_owned() }];
        let put = |value: &str| with_secrets(value.as_bytes(), &secrets, 100);
        assert_eq!(put("Bearer {secret:A}!").as_deref(), Ok(b"Bearer x{secret:B}!".as_slice()));
        assert_eq!(put("plain").as_deref(), Ok(b"plain".as_slice()));
        assert_eq!(put("{secret:B}").map_err(|failure| failure.code()), Err("ERR_NET_DENIED"));
        assert_eq!(put("{secret:A").map_err(|failure| failure.code()), Err("ERR_NET_DENIED"));
        assert_eq!(put(&"{secret:A}".repeat(10)).map_err(|failure| failure.code()), Err("ERR_NET_LIMIT"));
    }
}
