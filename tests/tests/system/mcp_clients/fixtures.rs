//! A server with the tools, resources and prompts that the conformance suite calls, behind the HTTP endpoint of the product: its
//! sessions, its streams and its form of errors, with another handler in the place of the product's. Results are JSON, as the
//! suite describes them.

#![allow(deprecated, reason = "the older generation of the protocol has log messages and sampling")]

mod content;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Request, Response};
use content::{PNG, complete, constant, form, form_of, from_json, input_of_name, sample, texts, tools};
use rmcp::RoleServer;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities,
    CompleteRequestParams, CompleteResult, ErrorData, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult, Implementation, InputRequiredResult, InputResponses, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingMessageNotificationParam,
    PaginatedRequestParams, ProgressNotificationParam, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, ServerCapabilities, ServerConfig, ServerRequest, SetLevelRequestParams,
    SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext, SubscriptionSink};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;
use vm_system_api::mcp::http::McpHttp;
use vm_system_ops::Caller;
use vm_system_record::Owner;

/// How long clients may keep lists and documents (milliseconds).
const TTL_MS: u64 = 60_000;
const BODY_BYTES: usize = 16 << 20;

/// Serves the fixtures on a port of loopback until the runtime ends.
pub(super) async fn serve() -> SocketAddr {
    let fixtures = Fixtures::default();
    let mcp = McpHttp::serving(move || fixtures.clone(), [7; 32], CancellationToken::new());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let router = Router::new().fallback(answer).with_state(Arc::new(mcp));
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

async fn answer(State(mcp): State<Arc<McpHttp<Fixtures>>>, request: Request<Body>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, BODY_BYTES).await.expect("a body");
    let caller = Caller { owner: Owner::new("suite"), admin: false, api: "mcp" };
    mcp.answer(caller, parts, body).await
}

fn input_required(requests: Value, state: Option<&str>) -> InputRequiredResult {
    InputRequiredResult::new(Some(from_json(requests)), state.map(sealed))
}

/// A state with a code that only this server can compute.
fn sealed(state: &str) -> String {
    let code = Sha256::digest(format!("key of the fixtures {state}"));
    let code = code.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    format!("{state}.{code}")
}

/// The state that a client returned; an error if the client changed it.
fn opened(state: Option<&str>) -> Result<Option<&str>, ErrorData> {
    let Some(text) = state else { return Ok(None) };
    let inner = text.rsplit_once('.').map_or(text, |(inner, _)| inner);
    if sealed(inner) == text {
        Ok(Some(inner))
    } else {
        Err(ErrorData::invalid_params("requestState was changed", None))
    }
}

/// An input of the client, if it is an object.
fn input<'a>(inputs: Option<&'a InputResponses>, name: &str) -> Option<&'a Value> {
    inputs?.get(name).filter(|input| input.is_object())
}

/// The handler.
#[derive(Clone, Default)]
struct Fixtures {
    listeners: Arc<Mutex<Vec<(u64, SubscriptionSink)>>>,
}

impl Fixtures {
    fn listeners(&self) -> Vec<SubscriptionSink> {
        let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.iter().map(|(_, sink)| sink.clone()).collect()
    }
}

/// The tools that need inputs of the client before they have a result.
fn with_inputs(
    request: &CallToolRequestParams,
    capabilities: &ClientCapabilities,
) -> Result<CallToolResponse, ErrorData> {
    let inputs = request.input_responses.as_ref();
    let state = opened(request.request_state.as_deref())?;
    let all = |names: &[&str]| names.iter().all(|name| input(inputs, name).is_some());
    let confirm = || json!({ "confirm": form("Please confirm", &json!({ "ok": { "type": "boolean" } })) });
    let three = || {
        let roots = json!({ "method": "roots/list" });
        json!({ "user_name": input_of_name(), "greeting": sample("Generate a greeting"), "client_roots": roots })
    };
    let required = match request.name.trim_start_matches("test_input_required_result_") {
        "elicitation" if all(&["user_name"]) => None,
        "elicitation" => Some(input_required(json!({ "user_name": input_of_name() }), None)),
        "sampling" if all(&["capital_question"]) => None,
        "sampling" => {
            let question = sample("What is the capital of France?");
            Some(input_required(json!({ "capital_question": question }), None))
        }
        "list_roots" if all(&["client_roots"]) => None,
        "list_roots" => Some(input_required(json!({ "client_roots": { "method": "roots/list" } }), None)),
        "request_state" | "tampered_state" if state.is_some() => None,
        "request_state" | "tampered_state" => Some(input_required(confirm(), Some("confirm"))),
        "multiple_inputs" if state.is_some() && all(&["user_name", "greeting", "client_roots"]) => None,
        "multiple_inputs" => Some(input_required(three(), Some("gather"))),
        "multi_round" => match state {
            None => Some(input_required(json!({ "step1": input_of_name() }), Some("1"))),
            Some("1") => {
                let color = form("What is your favorite color?", &json!({ "color": { "type": "string" } }));
                Some(input_required(json!({ "step2": color }), Some("2")))
            }
            Some(_) => None,
        },
        "capabilities" if inputs.is_some() => None,
        "capabilities" => {
            let mut requests = three();
            let declared = [
                ("user_name", capabilities.elicitation.is_some()),
                ("greeting", capabilities.sampling.is_some()),
                ("client_roots", capabilities.roots.is_some()),
            ];
            for (name, _) in declared.iter().filter(|(_, is_declared)| !is_declared) {
                requests.as_object_mut().expect("requests").remove(*name);
            }
            let is_empty = requests.as_object().is_none_or(serde_json::Map::is_empty);
            (!is_empty).then(|| input_required(requests, None))
        }
        name => return Err(ErrorData::invalid_params(format!("Unknown tool: {name}"), None)),
    };
    Ok(required.map_or_else(
        || {
            let text = format!("{}: state-ok, {}", request.name, json!(inputs));
            complete::<CallToolResult>(json!({ "content": texts(&text) })).into()
        },
        Into::into,
    ))
}

/// Sends the client a request and returns its result as text.
async fn requested(context: &RequestContext<RoleServer>, request: Value) -> Value {
    match context.peer.send_request(from_json::<ServerRequest>(request)).await {
        Ok(result) => json!({ "content": texts(&json!(result).to_string()) }),
        Err(error) => json!({ "content": texts(&error.to_string()), "isError": true }),
    }
}

async fn log(context: &RequestContext<RoleServer>, level: Value, text: &str) {
    let message = LoggingMessageNotificationParam::new(from_json(level), json!(text)).with_logger("fixtures");
    context.peer.notify_logging_message(message).await.expect("sent");
}

impl ServerHandler for Fixtures {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_resources_list_changed()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_logging()
            .enable_completions()
            .build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("fixtures", "1"))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools().into_iter().find(|tool| tool.name == name)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let all = ListToolsResult::with_all_items(tools());
        Ok(all.with_ttl_ms(TTL_MS).with_cache_scope(CacheScope::Public))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = request.name.as_ref();
        let capabilities = context.meta.client_capabilities().unwrap_or_default();
        if name.starts_with("test_input_required_result_") {
            return with_inputs(&request, &capabilities);
        }
        let argument = |name: &str| request.arguments.as_ref()?.get(name)?.as_str();
        let message = argument("message").unwrap_or("Please enter values");
        let result = if let Some(result) = constant(name) {
            result
        } else if let Some(form) = form_of(name, message) {
            requested(&context, form).await
        } else {
            match name {
                "test_sampling" => requested(&context, sample(argument("prompt").unwrap_or("Hello"))).await,
                "test_tool_with_logging" => {
                    for text in ["Tool execution started", "Tool processing data", "Tool execution completed"]
                    {
                        log(&context, json!("info"), text).await;
                    }
                    json!({ "content": texts("logged") })
                }
                "test_logging_tool" => {
                    if let Some(level) = context.meta.log_level() {
                        log(&context, json!(level), "logged").await;
                    }
                    json!({ "content": texts("logged") })
                }
                "test_tool_with_progress" => {
                    for progress in [0.0, 50.0, 100.0] {
                        let Some(token) = context.meta.get_progress_token() else { break };
                        let step = ProgressNotificationParam::new(token, progress).with_total(100.0);
                        context.peer.notify_progress(step).await.expect("sent");
                    }
                    json!({ "content": texts("done") })
                }
                "test_custom_header" => {
                    let value = argument("value");
                    let value =
                        value.ok_or_else(|| ErrorData::invalid_params("value must be a string", None))?;
                    json!({ "content": texts(value) })
                }
                "test_trigger_tool_change" => {
                    for listener in self.listeners() {
                        // A listener that has just ended.
                        let _ = listener.notify_tool_list_changed().await;
                    }
                    json!({ "content": texts("changed") })
                }
                "test_trigger_prompt_change" => {
                    for listener in self.listeners() {
                        let _ = listener.notify_prompt_list_changed().await;
                    }
                    json!({ "content": texts("changed") })
                }
                "test_missing_capability" if capabilities.sampling.is_none() => {
                    let missing = ClientCapabilities::builder().enable_sampling().build();
                    return Err(ErrorData::missing_required_client_capability(missing));
                }
                "test_missing_capability" => json!({ "content": texts("declared") }),
                "test_streaming_elicitation" => {
                    return Ok(
                        input_required(json!({ "streaming_elicitation": input_of_name() }), None).into()
                    );
                }
                _ => return Err(ErrorData::invalid_params(format!("Unknown tool: {name}"), None)),
            }
        };
        Ok(complete::<CallToolResult>(result).into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let all = from_json(json!([
            { "uri": "test://static-text", "name": "text", "mimeType": "text/plain" },
            { "uri": "test://static-binary", "name": "binary", "mimeType": "image/png" },
        ]));
        let all = ListResourcesResult::with_all_items(all);
        Ok(all.with_ttl_ms(TTL_MS).with_cache_scope(CacheScope::Public))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let all = from_json(json!([
            { "uriTemplate": "test://template/{id}/data", "name": "data", "mimeType": "application/json" },
        ]));
        let all = ListResourceTemplatesResult::with_all_items(all);
        Ok(all.with_ttl_ms(TTL_MS).with_cache_scope(CacheScope::Public))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.as_str();
        let of_template = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
        let content = match (uri, of_template) {
            ("test://static-text", _) => json!({
                "uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource.",
            }),
            ("test://static-binary", _) => json!({ "uri": uri, "mimeType": "image/png", "blob": PNG }),
            (_, Some(id)) => {
                let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
                json!({ "uri": uri, "mimeType": "application/json", "text": data.to_string() })
            }
            _ => {
                let why = format!("Resource not found: {uri}");
                return Err(ErrorData::resource_not_found(why, Some(json!({ "uri": uri }))));
            }
        };
        let result = ReadResourceResult::new(vec![from_json(content)]);
        Ok(result.with_ttl_ms(TTL_MS).with_cache_scope(CacheScope::Public).into())
    }

    async fn subscribe(
        &self,
        _: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let listeners = || self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        let id = {
            let mut listeners = listeners();
            let id = listeners.last().map_or(0, |(last, _)| last + 1);
            listeners.push((id, context.sink().clone()));
            id
        };
        context.cancelled().await;
        listeners().retain(|(listener, _)| *listener != id);
        Ok(())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let all = from_json(json!([
            { "name": "test_simple_prompt", "description": "Without arguments" },
            {
                "name": "test_prompt_with_arguments", "description": "With arguments",
                "arguments": [{ "name": "arg1", "required": true }, { "name": "arg2", "required": false }],
            },
            { "name": "test_prompt_with_embedded_resource", "description": "With a resource" },
            { "name": "test_prompt_with_image", "description": "With an image" },
            { "name": "test_input_required_result_prompt", "description": "With an input" },
        ]));
        let all = ListPromptsResult::with_all_items(all);
        Ok(all.with_ttl_ms(TTL_MS).with_cache_scope(CacheScope::Public))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let argument = |name: &str| {
            let arguments = request.arguments.as_ref();
            arguments.and_then(|all| all.get(name)).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let text = |text: String| json!({ "type": "text", "text": text });
        let contents = match request.name.as_str() {
            "test_simple_prompt" => vec![text("This is a simple test prompt.".to_owned())],
            "test_prompt_with_arguments" => {
                let (first, second) = (argument("arg1"), argument("arg2"));
                vec![text(format!("Prompt with arguments: arg1='{first}', arg2='{second}'"))]
            }
            "test_prompt_with_embedded_resource" => {
                let uri = Some(argument("resourceUri")).filter(|uri| !uri.is_empty());
                let uri = uri.unwrap_or_else(|| "test://example-resource".to_owned());
                let resource =
                    json!({ "uri": uri, "mimeType": "text/plain", "text": "Embedded resource content" });
                vec![json!({ "type": "resource", "resource": resource }), text("Process it.".to_owned())]
            }
            "test_prompt_with_image" => {
                vec![
                    json!({ "type": "image", "data": PNG, "mimeType": "image/png" }),
                    text("Analyze it.".to_owned()),
                ]
            }
            "test_input_required_result_prompt" => {
                let Some(given) = input(request.input_responses.as_ref(), "user_context") else {
                    let context = form("What context?", &json!({ "context": { "type": "string" } }));
                    return Ok(input_required(json!({ "user_context": context }), None).into());
                };
                vec![text(format!("Prompt with context: {given}"))]
            }
            name => return Err(ErrorData::invalid_params(format!("Unknown prompt: {name}"), None)),
        };
        let messages: Vec<Value> =
            contents.into_iter().map(|content| json!({ "role": "user", "content": content })).collect();
        Ok(complete::<GetPromptResult>(json!({ "messages": messages })).into())
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Ok(complete(json!({ "completion": { "values": ["Paris", "Park"], "total": 2, "hasMore": false } })))
    }

    async fn set_level(
        &self,
        _: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }
}
