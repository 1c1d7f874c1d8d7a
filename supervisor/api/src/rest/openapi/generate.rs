//! Makes the description from the table of routes and from the types of their handlers.

use super::super::routes::{self, Row};
use super::super::shapes::{NotEmpty, Reference, Uuid};
use super::super::{PREFIX, envelope::Envelope, query::QueryFields};
use super::schemas::{MessagePart, finish, merge};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};
use vm_system_protocol::control::UPGRADE_PROTOCOL;

/// The generators of the schemas of requests and of responses.
pub(super) struct Generators {
    requests: SchemaGenerator,
    responses: SchemaGenerator,
}

impl Generators {
    fn new() -> Self {
        let settings = || {
            let mut settings = SchemaSettings::draft2020_12();
            settings.definitions_path = "/components/schemas".into();
            settings
        };
        Self { requests: settings().into_generator(), responses: settings().for_serialize().into_generator() }
    }
}

/// One operation, as the signature of its handler has it.
pub(in crate::rest) struct DescribedOperation<'g> {
    generators: &'g mut Generators,
    parameters: Vec<Value>,
    /// The schema of the body, and whether it may be absent.
    body: Option<(Value, bool)>,
    answer: Value,
    is_paged: bool,
    is_streamed: bool,
    is_switched: bool,
}

impl DescribedOperation<'_> {
    pub(in crate::rest) fn query<Q: QueryFields>(&mut self) {
        let mut schema = Q::json_schema(&mut self.generators.requests).to_value();
        for name in Q::NAMES {
            let mut field = finish(schema["properties"][name].take(), MessagePart::Parameter);
            let about = field.as_object_mut().and_then(|field| field.remove("description"));
            self.parameters.push(json!({
                "name": name,
                "in": "query",
                "description": about,
                "required": false,
                "allowEmptyValue": true,
                "schema": field,
            }));
        }
    }

    pub(in crate::rest) fn body<T: JsonSchema>(&mut self, is_required: bool) {
        let schema = self.generators.requests.subschema_for::<T>().to_value();
        self.body = Some((finish(schema, MessagePart::Request), is_required));
    }

    pub(in crate::rest) fn answer<T: JsonSchema>(&mut self) {
        let schema = self.generators.responses.subschema_for::<T>().to_value();
        self.answer = finish(schema, MessagePart::Response);
    }

    pub(in crate::rest) fn paged(&mut self) {
        self.is_paged = true;
    }

    pub(in crate::rest) fn streamed(&mut self) {
        self.is_streamed = true;
    }

    pub(in crate::rest) fn switched(&mut self) {
        self.is_switched = true;
    }

    /// Whether a client may have the object already.
    fn has_tag(&self, row: &Row) -> bool {
        row.method == "GET" && !self.is_switched && self.answer["type"] != "array"
    }
}

fn header_reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/headers/{name}") })
}

fn schema_of<T: JsonSchema>() -> Value {
    T::json_schema(&mut SchemaGenerator::default()).to_value()
}

fn client_name() -> Value {
    json!({
        "type": "string",
        "minLength": 1,
        "maxLength": 200,
        "pattern": r"^[^\u0000-\u001f\u007f-\u009f]*[^\s\u0000-\u001f\u007f-\u009f][^\u0000-\u001f\u007f-\u009f]*$",
    })
}

/// The parameters in the path of a route.
fn path_parameters(path: &str) -> Vec<Value> {
    let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let described = |name: &str| {
        let (schema, about) = match name {
            "template_id" | "session_id" | "capability_id" | "file_id" => (schema_of::<Uuid>(), None),
            "client" => (client_name(), Some("1 to 200 characters")),
            "checkpoint" => (schema_of::<NotEmpty>(), Some("Number or name.")),
            "execution_id" | "program" => (schema_of::<Reference>(), Some("Id or name.")),
            _ => (schema_of::<Reference>(), None),
        };
        let mut parameter = json!({ "name": name, "in": "path", "required": true, "schema": schema });
        if let Some(about) = about {
            parameter["description"] = about.into();
        }
        parameter
    };
    names.map(described).collect()
}

/// The names of the statuses of refusals, in `components/responses`.
const REFUSALS: &[(u16, &str, &str, &str, &str)] = &[
    (
        400,
        "BadRequest",
        "A field, an id or a parameter is invalid (`VALIDATION_ERROR`), or the request as a whole (`INVALID_REQUEST`).",
        "VALIDATION_ERROR",
        "limit must be a whole number from 1 to 4294967295",
    ),
    (401, "Unauthorized", "A token is missing or unknown.", "UNAUTHORIZED", "unknown token"),
    (
        403,
        "Forbidden",
        "The caller may not do this, or the page's origin or the host's name is foreign.",
        "NOT_PERMITTED",
        "requests from pages of another origin are refused",
    ),
    (
        404,
        "NotFound",
        "There is no such object of the caller.",
        "SESSION_NOT_FOUND",
        "there is no session 018f0000-0000-7000-8000-000000000000",
    ),
    (
        408,
        "Timeout",
        "The body was not complete in time.",
        "INVALID_REQUEST",
        "the body was not complete in time",
    ),
    (
        409,
        "Conflict",
        "The object's state does not permit it, or the idempotency key belongs to another request.",
        "SESSION_BUSY",
        "another execution runs in this session",
    ),
    (413, "TooLarge", "The body is too large.", "INVALID_REQUEST", "the body has more than 1048576 bytes"),
    (
        415,
        "UnsupportedMediaType",
        "The body is not `application/json`, or compressed.",
        "INVALID_REQUEST",
        "the body must have Content-Type: application/json",
    ),
    (
        422,
        "Unprocessable",
        "The request is well-formed, and refused by its content.",
        "INVALID_PATH",
        "the path leads out of the worktree",
    ),
    (
        500,
        "InternalError",
        "A bug; the log has the details under the request's id.",
        "INTERNAL",
        "the supervisor failed at this request; its log has the details under the request's id",
    ),
    (
        503,
        "Unavailable",
        "No capacity, no storage, or the supervisor is stopping; try again later.",
        "CAPACITY_EXCEEDED",
        "the limit of sessions is reached",
    ),
];

/// The statuses of refusals that a route may have.
fn refusals_of(row: &Row) -> Vec<u16> {
    let mut statuses = vec![400, 401, 403, 500, 503];
    if row.path.contains('{') || row.method == "POST" {
        statuses.push(404);
    }
    match row.method {
        "DELETE" => statuses.push(409),
        "POST" | "PUT" | "PATCH" => statuses.extend([408, 409, 413, 415, 422]),
        _ => {}
    }
    statuses.extend(row.refusals.iter().filter(|status| **status != 426));
    statuses
}

fn envelope_content() -> Value {
    json!({ "schema": { "$ref": "#/components/schemas/Envelope" } })
}

fn describe_route(row: &Row, generators: &mut Generators) -> Value {
    let mut operation = DescribedOperation {
        generators,
        parameters: path_parameters(row.path),
        body: None,
        answer: Value::Null,
        is_paged: false,
        is_streamed: false,
        is_switched: false,
    };
    (row.describe)(&mut operation);
    let has_tag = operation.has_tag(row);
    let mut responses = Map::new();
    for status in row.statuses {
        responses.insert(status.to_string(), successful_response(*status, row, &operation));
    }
    if has_tag {
        let headers =
            json!({ "X-Request-Id": header_reference("XRequestId"), "ETag": header_reference("ETag") });
        let known = json!({ "description": "The client has this object.", "headers": headers });
        responses.insert("304".to_owned(), known);
    }
    for status in refusals_of(row) {
        let name = REFUSALS.iter().find(|(known, ..)| *known == status).map(|(_, name, ..)| name);
        let name = name.expect("a refusal with a name");
        responses.insert(status.to_string(), json!({ "$ref": format!("#/components/responses/{name}") }));
    }
    if operation.is_switched {
        let mut content = envelope_content();
        content["example"] = json!({ "error": {
            "code": "INVALID_REQUEST",
            "message": format!("this resource is an upgrade: Connection: Upgrade, Upgrade: {UPGRADE_PROTOCOL}"),
        } });
        let refusal = json!({
            "description": "The request is no upgrade to this version of the protocol.",
            "headers": { "X-Request-Id": header_reference("XRequestId"), "Upgrade": upgrade_header("The protocol of this supervisor") },
            "content": { "application/json": content },
        });
        responses.insert("426".to_owned(), refusal);
    }
    responses.insert(
        "default".to_owned(),
        json!({ "description": "Refused; see `error.code`.", "content": { "application/json": envelope_content() } }),
    );
    let mut parameters = std::mem::take(&mut operation.parameters);
    if operation.is_streamed {
        parameters.push(json!({
            "name": "Last-Event-ID",
            "in": "header",
            "description": "For streams: only events after this sequence number.",
            "required": false,
            "schema": { "type": "integer", "format": "int64", "minimum": 0, "maximum": i64::MAX },
        }));
    }
    if operation.is_switched {
        let about = "The control protocol and its version; together with `Connection: Upgrade`";
        for (name, about, value) in
            [("Upgrade", Some(about), UPGRADE_PROTOCOL), ("Connection", None, "Upgrade")]
        {
            let mut parameter = json!({
                "name": name,
                "in": "header",
                "required": true,
                "schema": { "type": "string", "enum": [value] },
            });
            if let Some(about) = about {
                parameter["description"] = about.into();
            }
            parameters.push(parameter);
        }
    }
    for (is_there, name) in [(has_tag, "IfNoneMatch"), (row.method == "POST", "IdempotencyKey")] {
        if is_there {
            parameters.push(json!({ "$ref": format!("#/components/parameters/{name}") }));
        }
    }
    let mut described = json!({
        "operationId": row.id,
        "tags": [row.tag],
        "summary": row.summary.trim(),
        "responses": responses,
    });
    if !parameters.is_empty() {
        described["parameters"] = parameters.into();
    }
    if let Some((schema, is_required)) = operation.body.take() {
        described["requestBody"] =
            json!({ "required": is_required, "content": { "application/json": { "schema": schema } } });
    }
    described
}

fn upgrade_header(about: &str) -> Value {
    json!({ "description": about, "schema": { "type": "string", "examples": [UPGRADE_PROTOCOL] } })
}

/// A successful response.
fn successful_response(status: u16, row: &Row, operation: &DescribedOperation<'_>) -> Value {
    let mut headers = json!({ "X-Request-Id": header_reference("XRequestId") });
    let about = match status {
        101 => "From here on, the connection has the frames of the control protocol.",
        200 => "Done.",
        201 => "Created.",
        202 => "Started.",
        204 => "For streams: all events were sent before, and no more will follow.",
        _ => panic!("{} {}: status {status} has no description", row.method, row.path),
    };
    if status == 101 {
        headers["Upgrade"] = upgrade_header("The protocol of the connection");
    }
    if [101, 204].contains(&status) {
        return json!({ "description": about, "headers": headers });
    }
    if operation.is_paged {
        headers["X-Next-Cursor"] = header_reference("XNextCursor");
    }
    if operation.has_tag(row) {
        headers["ETag"] = header_reference("ETag");
    }
    let mut content = json!({ "application/json": { "schema": operation.answer } });
    if operation.is_streamed {
        content["text/event-stream"] = json!({ "schema": { "type": "string" } });
    }
    json!({ "description": about, "headers": headers, "content": content })
}

/// The responses that routes have in common.
fn common_responses() -> Value {
    let response = |(status, name, about, code, message): &(u16, &str, &str, &str, &str)| {
        let mut headers = json!({ "X-Request-Id": header_reference("XRequestId") });
        match status {
            401 => headers["WWW-Authenticate"] = header_reference("WWWAuthenticate"),
            503 => headers["Retry-After"] = header_reference("RetryAfter"),
            _ => {}
        }
        let mut content = envelope_content();
        content["example"] = json!({ "error": { "code": code, "message": message } });
        let response = json!({
            "description": about,
            "headers": headers,
            "content": { "application/json": content },
        });
        ((*name).to_owned(), response)
    };
    Value::Object(REFUSALS.iter().map(response).collect())
}

/// The description as text.
pub(super) fn document() -> String {
    let mut generators = Generators::new();
    let mut paths = Map::new();
    for row in routes::rows() {
        let operation = describe_route(&row, &mut generators);
        let path = paths.entry(row.path).or_insert_with(|| json!({}));
        path[row.method.to_lowercase()] = operation;
    }
    generators.responses.subschema_for::<Envelope<'static>>();
    let schemas =
        merge(generators.requests.take_definitions(true), generators.responses.take_definitions(true));
    let text = |about: &str| json!({ "description": about, "schema": { "type": "string" } });
    let sections = [
        ("openapi", json!("3.1.0")),
        (
            "info",
            json!({
                "title": "vm-system",
                "description": ABOUT.trim(),
                "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
                "version": env!("CARGO_PKG_VERSION"),
            }),
        ),
        ("servers", json!([{ "url": PREFIX }])),
        ("security", json!([{}, { "bearer": [] }])),
        ("paths", Value::Object(paths)),
        (
            "components",
            json!({
                "schemas": schemas,
                "responses": common_responses(),
                "parameters": {
                    "IdempotencyKey": {
                        "name": "Idempotency-Key",
                        "in": "header",
                        "description": "For 24 hours, a request of the same owner with the same key and the same content gets the \
                                        first response again; with other content it is refused (409).",
                        "required": false,
                        "schema": {
                            "type": "string",
                            "minLength": 1,
                            "maxLength": 255,
                            "pattern": "^[!-~]([ -~]*[!-~])?[ \\t]*$",
                        },
                    },
                    "IfNoneMatch": {
                        "name": "If-None-Match",
                        "in": "header",
                        "description": "Entity tags that the client has: 304 if the object is unchanged.",
                        "required": false,
                        "schema": { "type": "string" },
                    },
                },
                "headers": {
                    "XRequestId": text("Id of the request, also in the log."),
                    "XNextCursor": text("`cursor` of the next part; absent after the last one."),
                    "ETag": text("Tag of the object, for `If-None-Match`."),
                    "RetryAfter": { "description": "Seconds.", "schema": { "type": "integer", "minimum": 0 } },
                    "Allow": text("The methods of the resource."),
                    "WWWAuthenticate": text("How to authenticate: `Bearer`."),
                },
                "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer" } },
            }),
        ),
    ];
    // The order of the sections is that of readers.
    let written = sections.map(|(name, section)| {
        let section = serde_json::to_string_pretty(&section).expect("JSON without keys that are no texts");
        format!("  \"{name}\": {}", section.replace('\n', "\n  "))
    });
    format!("{{\n{}\n}}\n", written.join(",\n"))
}

/// The text about all routes.
const ABOUT: &str = "
Untrusted JavaScript in sandboxed worker processes. Every error has the same envelope; programs match on `error.code`. Every \
response has X-Request-Id. POST, PATCH and DELETE accept Idempotency-Key. A list that accepts `limit` and `cursor` has parts: \
X-Next-Cursor is the `cursor` of the next part, and no list ends without it unless it is complete. Unknown fields of bodies and unknown query parameters \
are refused; an empty query parameter counts as absent. GET of an object has an ETag; large responses are compressed with gzip for \
clients that accept it. OPTIONS names the methods of a resource in Allow.";
