//! HTTP requests between the engine, which has them as JSON, and the supervisor. Must not: judge them.

use crate::engine::expand;
use serde_json::Value;
use vm_system_cvm::{HostResponse, HostResult};
use vm_system_protocol::durable::{HttpResponse, REQUEST_BODY_BYTES, RESPONSE_BODY_BYTES};
use vm_system_protocol::egress::{HttpHeader, HttpRequest};
use vm_system_protocol::limits::{HTTP_HEADER_BYTES, HTTP_METHOD_BYTES, HTTP_URL_BYTES};
use vm_system_protocol::worker::HostError;

/// The request that a program makes with these arguments; the error is what it gets instead. `None`: no program makes such a call.
pub(super) fn request(args: &str) -> Option<Result<HttpRequest, HostResult>> {
    let args: Value = serde_json::from_str(args).ok()?;
    let [method, url, fields, body] = args.as_array()?.as_slice() else { return None };
    let texts: Vec<&str> = fields.as_array()?.iter().map(Value::as_str).collect::<Option<_>>()?;
    let header = |[name, value]: &[&str; 2]| {
        // One character for each byte.
        let value = value.chars().map(|char| u8::try_from(char).ok()).collect::<Option<_>>()?;
        Some(HttpHeader { name: (*name).to_owned(), value })
    };
    let headers = texts.as_chunks().0.iter().map(header).collect::<Option<_>>()?;
    let data = match body {
        Value::Null => Vec::new(),
        body => vm_system_web::from_base64(body.as_str()?)?,
    };
    let (method, url) = (method.as_str()?.to_owned(), url.as_str()?.to_owned());
    let request = HttpRequest { method, url, headers, data, end: true };
    Some(refusal(&request).map_or(Ok(request), Err))
}

/// Why a request is refused before it is part of a state that has to be stored; the supervisor judges all others.
fn refusal(request: &HttpRequest) -> Option<HostResult> {
    let refused = |code: &str, message| Some(HostResult::Failed { code: code.to_owned(), message });
    let HttpRequest { method, url, headers, data, .. } = request;
    let bytes: usize = headers.iter().map(|header| header.name.len() + header.value.len()).sum();
    if method.len() > HTTP_METHOD_BYTES || url.len() > HTTP_URL_BYTES || bytes > HTTP_HEADER_BYTES {
        let most = format!("{HTTP_METHOD_BYTES}, {HTTP_URL_BYTES} and {HTTP_HEADER_BYTES}");
        let message = format!("the method, the URL or the header fields have more than {most} bytes");
        return refused("ERR_INVALID_ARG_VALUE", message);
    }
    if data.len() > REQUEST_BODY_BYTES {
        let kib = REQUEST_BODY_BYTES / 1024;
        let message = format!("the body of the request is larger than {kib} KiB (max_request_kb)");
        return refused("ERR_NET_LIMIT", message);
    }
    None
}

/// A response as the program gets it: its body is decoded.
pub(super) fn response(result: Result<HttpResponse, HostError>) -> HostResult {
    let HttpResponse { status, reason, headers, body } = match result {
        Ok(response) => response,
        Err(HostError { code, message }) => return HostResult::Failed { code, message },
    };
    match decoded(&headers, body) {
        Ok(body) => {
            let headers = headers.into_iter().map(|HttpHeader { name, value }| (name, value)).collect();
            HostResult::Response(Box::new(HostResponse { status, reason, headers, body }))
        }
        Err(message) => HostResult::Failed { code: String::new(), message },
    }
}

/// The body without the codings of `content-encoding`, which are named in the order in which they were applied.
fn decoded(headers: &[HttpHeader], mut body: Vec<u8>) -> Result<Vec<u8>, String> {
    let fields = headers.iter().filter(|header| header.name.eq_ignore_ascii_case("content-encoding"));
    let values: Vec<String> =
        fields.map(|header| String::from_utf8_lossy(&header.value).to_ascii_lowercase()).collect();
    let values = values.join(",");
    let codings = values.split(',').map(str::trim).filter(|coding| !["", "identity"].contains(coding));
    for coding in codings.rev().filter(|_| !body.is_empty()).collect::<Vec<_>>() {
        let format = match coding {
            "gzip" | "x-gzip" => "gzip",
            "deflate" => "deflate",
            "br" => "brotli",
            other => {
                let shown: String = other.chars().take(100).collect();
                return Err(format!("the content-encoding {shown} is not supported (br, gzip, deflate)"));
            }
        };
        body = expand(format, &body, RESPONSE_BODY_BYTES).map_err(|error| error.to_string())?;
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::{decoded, request};
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write as _;
    use vm_system_cvm::HostResult;
    use vm_system_protocol::durable::{REQUEST_BODY_BYTES, RESPONSE_BODY_BYTES};
    use vm_system_protocol::egress::HttpHeader;

    fn coding(value: &str) -> Vec<HttpHeader> {
        vec![HttpHeader { name: "content-encoding".to_owned(), value: value.as_bytes().to_vec() }]
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).expect("memory");
        encoder.finish().expect("memory")
    }

    #[test]
    fn a_request_is_read_from_the_arguments_of_the_call() {
        let made = request(r#"["POST","http://a/",["x","\u00e9","y",""],"YmM="]"#);
        let Some(Ok(made)) = made else { panic!("{made:?}") };
        assert_eq!((made.method.as_str(), made.url.as_str()), ("POST", "http://a/"));
        let headers: Vec<_> = made.headers.into_iter().map(|header| (header.name, header.value)).collect();
        assert_eq!(headers, [("x".to_owned(), vec![0xe9]), ("y".to_owned(), Vec::new())]);
        assert_eq!((made.data.as_slice(), made.end), (&b"bc"[..], true));
        for wrong in ["", "[]", r#"["GET","u",["x"],1]"#, r#"["GET","u",["x","\u0100"],null]"#] {
            assert_eq!(request(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_no_request_may_have_is_refused_before_it_is_stored() {
        let long = "x".repeat(20_000);
        for (args, refused) in [
            (format!(r#"["GET","http://a/{long}",[],null]"#), "ERR_INVALID_ARG_VALUE"),
            (format!(r#"["{}","http://a/",[],null]"#, &long[..40]), "ERR_INVALID_ARG_VALUE"),
            (
                format!(r#"["GET","http://a/",["a","{long}","b","{long}","c","{long}","d","{long}"],null]"#),
                "ERR_INVALID_ARG_VALUE",
            ),
            (format!(r#"["POST","u",[],"{}"]"#, "AAAA".repeat(REQUEST_BODY_BYTES / 3 + 1)), "ERR_NET_LIMIT"),
        ] {
            let made = request(&args);
            assert!(
                matches!(made, Some(Err(HostResult::Failed { code, .. })) if code == refused),
                "{refused}"
            );
        }
    }

    #[test]
    fn bodies_are_decoded_within_a_bound() {
        assert_eq!(decoded(&coding("GZip"), gzip(b"text")), Ok(b"text".to_vec()));
        assert_eq!(decoded(&coding("gzip, gzip"), gzip(&gzip(b"text"))), Ok(b"text".to_vec()));
        assert_eq!(decoded(&coding("identity"), b"text".to_vec()), Ok(b"text".to_vec()));
        assert_eq!(decoded(&coding("gzip"), Vec::new()), Ok(Vec::new()), "the response to HEAD");
        assert_eq!(
            decoded(&coding("zstd"), b"text".to_vec()),
            Err("the content-encoding zstd is not supported (br, gzip, deflate)".to_owned())
        );
        assert!(decoded(&coding("gzip"), gzip(b"text")[..10].to_vec()).is_err(), "it is cut");
        let bomb = gzip(&vec![0; RESPONSE_BODY_BYTES + 1]);
        let error = decoded(&coding("gzip"), bomb).expect_err("too large");
        assert!(error.contains("16384 KiB"), "{error}");
    }
}
