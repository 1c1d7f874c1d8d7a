//! Input of clients: bodies (strict JSON of bounded size in bounded time), queries, path segments.

use super::envelope::RestError;
use super::memory::RequestMemory;
use super::{App, RestLimits};
use axum::body::{Body, Bytes};
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequest, FromRequestParts, Path};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Request, StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::str::FromStr;
use std::sync::Arc;
use tokio::time::timeout;
use vm_system_protocol::input::{not_json, read_json};
use vm_system_protocol::json::JsonText;

/// Most parameters of a query.
const PARAMETERS: usize = 32;

/// A JSON body.
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for JsonBody<T> {
    type Rejection = RestError;

    async fn from_request(request: Request<Body>, app: &Arc<App>) -> Result<Self, RestError> {
        match read(request, app).await? {
            Some(bytes) => parse(&bytes).map(Self),
            None => Err(RestError::request(
                StatusCode::BAD_REQUEST,
                "the request has no body; a JSON object is required",
            )),
        }
    }
}

/// A JSON body that may be absent.
pub(super) struct OptionalJsonBody<T>(pub(super) T);

impl<T: DeserializeOwned + Default> FromRequest<Arc<App>> for OptionalJsonBody<T> {
    type Rejection = RestError;

    async fn from_request(request: Request<Body>, app: &Arc<App>) -> Result<Self, RestError> {
        match read(request, app).await? {
            Some(bytes) => parse(&bytes).map(Self),
            None => Ok(Self(T::default())),
        }
    }
}

/// The bytes of a body; `None` if it is empty.
async fn read(request: Request<Body>, app: &App) -> Result<Option<Vec<u8>>, RestError> {
    let (parts, body) = request.into_parts();
    let limit = app.options.limits.body_bytes;
    if let Some(memory) = parts.extensions.get::<RequestMemory>() {
        memory.body(announced(&body, limit)).await?;
    }
    let bytes = collect(body, &app.options.limits).await?;
    if bytes.is_empty() {
        return Ok(None);
    }
    is_json(&parts.headers)?;
    Ok(Some(bytes.to_vec()))
}

/// How large a body may be that is read up to a limit.
pub(super) fn announced(body: &Body, limit: usize) -> usize {
    let upper = http_body::Body::size_hint(body).upper().and_then(|bytes| usize::try_from(bytes).ok());
    upper.unwrap_or(limit).min(limit)
}

/// Reads a body of bounded size in bounded time.
pub(super) async fn collect(body: Body, limits: &RestLimits) -> Result<Bytes, RestError> {
    let too_large = || {
        let message = format!("the body has more than {} bytes", limits.body_bytes);
        RestError::request(StatusCode::PAYLOAD_TOO_LARGE, message)
    };
    // A body with a too large `Content-Length` is refused before it is read.
    if http_body::Body::size_hint(&body).lower() > limits.body_bytes as u64 {
        return Err(too_large());
    }
    let collected = timeout(limits.body, Limited::new(body, limits.body_bytes).collect())
        .await
        .map_err(|_| RestError::request(StatusCode::REQUEST_TIMEOUT, "the body was not complete in time"))?;
    match collected {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
        Err(error) => {
            let message = format!("the body cannot be read: {error}");
            Err(RestError::request(StatusCode::BAD_REQUEST, message))
        }
    }
}

pub(super) fn is_json(headers: &HeaderMap) -> Result<(), RestError> {
    let refuse = |message: &str| Err(RestError::request(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    if headers
        .get(header::CONTENT_ENCODING)
        .is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"))
    {
        return refuse("compressed bodies are not supported");
    }
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(kind), None) = (types.next(), types.next()) else {
        return refuse("the body needs one header Content-Type: application/json");
    };
    let kind = kind.to_str().unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        Ok(())
    } else {
        refuse("the body must have Content-Type: application/json")
    }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, RestError> {
    // serde would also read a struct from an array, by position.
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Err(RestError::request(StatusCode::BAD_REQUEST, "the body is not a JSON object"));
    }
    read_json("the body", bytes)
        .map_err(|why| RestError::request(StatusCode::BAD_REQUEST, format!("invalid body: {why}")))
}

/// A JSON object of a body as compact text, in the client's order and with the client's digits.
pub(super) fn object(field: &str, raw: Option<&RawValue>) -> Result<Option<JsonText>, RestError> {
    let Some(raw) = raw.filter(|raw| raw.get() != "null") else { return Ok(None) };
    let text = JsonText::from_untrusted(compact(raw.get()));
    match serde_json::from_str::<serde_json::Value>(text.as_str()) {
        Ok(value) if value.is_object() => Ok(Some(text)),
        Ok(_) => Err(RestError::request(StatusCode::BAD_REQUEST, format!("{field} must be an object"))),
        Err(error) => {
            let why = not_json(&error);
            Err(RestError::request(StatusCode::BAD_REQUEST, format!("{field}: {why}")))
        }
    }
}

/// A whole number; JSON Schema counts `14.0` as one.
pub(super) fn whole<'de, N, D>(number: D) -> Result<Option<N>, D::Error>
where
    N: TryFrom<i128>,
    D: serde::Deserializer<'de>,
{
    let Some(number) = Option::<serde_json::Number>::deserialize(number)? else { return Ok(None) };
    let whole = whole_number(&number).and_then(|whole| N::try_from(whole).ok());
    whole
        .map(Some)
        .ok_or_else(|| serde::de::Error::custom(format!("{number} is not a whole number in range")))
}

/// Up to here all whole numbers are exact as floating-point numbers: 2^53 - 1, as in JavaScript.
const MOST_EXACT: f64 = 9_007_199_254_740_991.0;

/// The value of a JSON number without a fraction; `None` for other numbers.
pub(super) fn whole_number(number: &serde_json::Number) -> Option<i128> {
    match number.as_i128() {
        Some(whole) => Some(whole),
        // Larger ones are not exact.
        None => number
            .as_f64()
            .filter(|float| float.fract() == 0.0 && float.abs() <= MOST_EXACT)
            .map(|float| float as i128),
    }
}

/// An object of a body (a part of the settings, a config) with whole numbers as integers.
pub(super) fn with_integers(field: &str, raw: Option<&RawValue>) -> Result<Option<JsonText>, RestError> {
    fn integers(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Number(number) if number.is_f64() => {
                if let Some(whole) = whole_number(number).and_then(|whole| i64::try_from(whole).ok()) {
                    *number = whole.into();
                }
            }
            serde_json::Value::Object(members) => members.values_mut().for_each(integers),
            _ => {}
        }
    }
    let Some(mut value) = object(field, raw)?.and_then(|text| text.to_value()) else { return Ok(None) };
    integers(&mut value);
    Ok(Some(JsonText::from_value(&value)))
}

/// Removes the white space between the tokens of valid JSON.
fn compact(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let (mut in_text, mut escaped) = (false, false);
    for char in json.chars() {
        if in_text {
            in_text = escaped || char != '"';
            escaped = !escaped && char == '\\';
        } else if char.is_ascii_whitespace() {
            continue;
        } else {
            in_text = char == '"';
        }
        out.push(char);
    }
    out
}

/// A field that must be present and not blank.
pub(super) fn required(field: &str, value: Option<String>) -> Result<String, RestError> {
    match value {
        Some(value) if !value.trim().is_empty() => Ok(value),
        _ => Err(RestError::invalid(format!("{field} is missing"))),
    }
}

/// A UUID: upper case is accepted, anything else is not an id.
pub(super) fn id(field: &str, text: &str) -> Result<String, RestError> {
    match uuid::Uuid::try_parse(text) {
        Ok(id) if text.len() == 36 => Ok(id.hyphenated().to_string()),
        _ => Err(RestError::invalid(format!(
            "{field} is not an id (a UUID): names are not accepted here, lists show the ids"
        ))),
    }
}

/// Segments of the path.
pub(super) struct PathSegments<T>(pub(super) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Arc<App>> for PathSegments<T> {
    type Rejection = RestError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, RestError> {
        let path: Result<Path<T>, PathRejection> = Path::from_request_parts(parts, app).await;
        path.map(|Path(value)| Self(value)).map_err(|_| RestError::invalid("the path is not valid UTF-8"))
    }
}

/// A type of numbers in queries.
pub(super) trait WholeNumber: Sized {
    /// The largest one: within the 64 bits with sign that the description promises.
    const MOST: Self;
}

impl WholeNumber for u32 {
    const MOST: Self = Self::MAX;
}

impl WholeNumber for u64 {
    const MOST: Self = i64::MAX.unsigned_abs();
}

/// The parameters of a query; unknown ones were refused before (`routes`).
pub(super) struct QueryParams(Vec<(String, String)>);

impl QueryParams {
    /// The parameters of a query; the error says that there are too many.
    pub(super) fn parse(query: &str) -> Result<Self, RestError> {
        let pairs: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes())
            .take(PARAMETERS + 1)
            .map(|(name, value)| (name.into_owned(), value.into_owned()))
            .collect();
        if pairs.len() > PARAMETERS {
            return Err(RestError::invalid(format!("the query has more than {PARAMETERS} parameters")));
        }
        Ok(Self(pairs))
    }

    /// The value of a parameter; an empty one counts as absent.
    pub(super) fn one(&self, name: &str) -> Result<Option<&str>, RestError> {
        let mut found = self.0.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let value = found.next();
        if found.next().is_some() {
            return Err(RestError::invalid(format!("the parameter {name} is given twice")));
        }
        Ok(value.filter(|value| !value.is_empty()))
    }

    /// A whole number that is at least `least`.
    pub(super) fn number<N: Copy + FromStr + PartialOrd + std::fmt::Display + WholeNumber>(
        &self,
        name: &str,
        least: N,
    ) -> Result<Option<N>, RestError> {
        let Some(text) = self.one(name)? else { return Ok(None) };
        match text.parse::<N>() {
            Ok(number)
                if number >= least
                    && number <= N::MOST
                    && text.bytes().all(|digit| digit.is_ascii_digit()) =>
            {
                Ok(Some(number))
            }
            _ => {
                Err(RestError::invalid(format!("{name} must be a whole number from {least} to {}", N::MOST)))
            }
        }
    }

    /// `true` or `false`.
    pub(super) fn flag(&self, name: &str, otherwise: bool) -> Result<bool, RestError> {
        match self.one(name)? {
            None => Ok(otherwise),
            Some("true" | "1") => Ok(true),
            Some("false" | "0") => Ok(false),
            Some(_) => Err(RestError::invalid(format!("{name} must be true or false"))),
        }
    }

    /// One of a few names.
    pub(super) fn name<T: FromStr>(&self, name: &str, names: &str) -> Result<Option<T>, RestError> {
        let Some(text) = self.one(name)? else { return Ok(None) };
        text.parse().map(Some).map_err(|_| RestError::invalid(format!("{name} must be one of {names}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_drops_white_space_between_tokens_only() {
        let spaced = "{ \"a b\" : [ 1 ,\n 2 ] ,\t\"c\\\" d\" : \" \\\\\" , \"e\" : 1e5 }";
        assert_eq!(compact(spaced), r#"{"a b":[1,2],"c\" d":" \\","e":1e5}"#);
    }

    #[test]
    fn objects_keep_order_and_digits_and_other_values_are_refused() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).expect("json");
        let long = r#"{"z":12345678901234567890123,"a":1}"#;
        let text = object("args", Some(&raw(long))).expect("an object").expect("given");
        assert_eq!(text.as_str(), long);
        assert!(object("args", Some(&raw("null"))).expect("absent").is_none());
        for bad in ["[]", "1", "\"{}\"", &("{\"a\":".repeat(200) + "1" + &"}".repeat(200))] {
            assert!(object("args", Some(&raw(bad))).is_err(), "{bad}");
        }
    }

    #[test]
    fn parameters_are_checked() {
        let params = |query: &str| {
            QueryParams(
                form_urlencoded::parse(query.as_bytes())
                    .map(|(a, b)| (a.into_owned(), b.into_owned()))
                    .collect(),
            )
        };
        assert_eq!(params("limit=7").number::<u32>("limit", 1).expect("fine"), Some(7));
        assert_eq!(params("limit=").number::<u32>("limit", 1).expect("fine"), None);
        for bad in
            ["limit=0", "limit=-1", "limit=+1", "limit=x", "limit=4294967296", "limit=1&limit=2", "limit=1.0"]
        {
            assert!(params(bad).number::<u32>("limit", 1).is_err(), "{bad}");
        }
        assert_eq!(
            params("n=9223372036854775807").number::<u64>("n", 0).expect("fine"),
            Some(i64::MAX as u64)
        );
        assert!(params("n=9223372036854775808").number::<u64>("n", 0).is_err());
        assert!(!params("wait=false").flag("wait", true).expect("fine"));
        assert!(params("wait=perhaps").flag("wait", true).is_err());
    }

    #[test]
    fn whole_numbers_may_be_written_with_a_fraction_of_zero() {
        let read = |text: &str| {
            let mut json = serde_json::Deserializer::from_str(text);
            whole::<u32, _>(&mut json).map_err(|error| error.to_string())
        };
        assert_eq!(
            (read("14"), read("14.0"), read("1.4e1"), read("null")),
            (Ok(Some(14)), Ok(Some(14)), Ok(Some(14)), Ok(None))
        );
        for bad in ["14.5", "-1", "-1.0", "4294967296", "1e300", "\"14\""] {
            assert!(read(bad).is_err(), "{bad}");
        }
        let mut largest = serde_json::Deserializer::from_str("9007199254740991.0");
        assert_eq!(whole::<u64, _>(&mut largest).expect("exact"), Some((1 << 53) - 1));
        let raw = RawValue::from_string("{\"cpu_ms\":7.0,\"x\":{\"y\":1.5}}".to_owned()).expect("json");
        let text = with_integers("limits", Some(&raw)).expect("an object").expect("given");
        assert_eq!(text.as_str(), "{\"cpu_ms\":7,\"x\":{\"y\":1.5}}");
    }

    #[test]
    fn ids_are_uuids_in_either_case() {
        let upper = "00112233-4455-6677-8899-AABBCCDDEEFF";
        assert_eq!(id("id", upper).expect("an id"), upper.to_lowercase());
        for bad in [
            "",
            "x",
            "00112233445566778899aabbccddeeff",
            "../../etc",
            "{00112233-4455-6677-8899-aabbccddeeff}",
        ] {
            assert!(id("id", bad).is_err(), "{bad}");
        }
    }
}
