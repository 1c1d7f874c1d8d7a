//! Requests of the protocol: lists tools, prompts and resources, and dispatches calls to them. Knows no transport.

use super::call::ToolCall;
use super::confirm::Confirmations;
use super::evaluations::Evaluations;
use super::given::GivenTasks;
use super::output::{self, ToolError};
use super::watch::{self, Watches};
use super::{McpBackend, McpClient, background, completions, prompts, resources, tools};
use rmcp::RoleServer;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult,
    CreateTaskResult, CustomRequest, CustomResult, ErrorCode, ErrorData, Extensions, GetPromptRequestParams,
    GetPromptResponse, GetTaskParams, GetTaskResult, Implementation, JsonObject, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
    SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use serde_json::{Value, json};
use std::sync::Arc;
use vm_system_protocol::control::{ErrorCode as Code, RunGet};
use vm_system_runtime::shares::Shares;

/// Instructions that an agent reads before it uses any tool.
pub(super) const INSTRUCTIONS: &str = "Programs that give you tasks and keep their state until you answer. Load one (load), \
    start it, then repeat: getTask returns the pending task, you do the work, submitTask submits the answer. \
    An execution has ended when `state` is COMPLETED or ERROR. Its state is on disk: you may continue after a second or \
    a month. session_* tools run JavaScript in a sandbox. Further sets of tools can be listed: branch (rewind, fork), \
    admin, plans, sessions; your user lists them with `vm-system mcp --toolsets SETS`, or over HTTP with /mcp?toolsets=SETS.";

/// Methods that are served: for these, wrong parameters are not reported as an unknown method.
const KNOWN_METHODS: &[&str] = &[
    "completion/complete",
    "initialize",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/templates/list",
    "resources/unsubscribe",
    "subscriptions/listen",
    "tasks/cancel",
    "tasks/get",
    "tasks/update",
    "tools/call",
    "tools/list",
];

/// The methods that the newer generation of the protocol does not have.
pub(super) const OLDER_METHODS: &[&str] = &["initialize", "resources/subscribe", "resources/unsubscribe"];

/// One server for one or many clients. Cheap to clone.
#[derive(Clone)]
pub struct McpServer {
    backend: Arc<dyn McpBackend>,
    confirmations: Arc<Confirmations>,
    given: Arc<GivenTasks>,
    evaluations: Arc<Evaluations>,
    watches: Arc<Watches>,
    shares: Arc<Shares>,
}

impl std::fmt::Debug for McpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpServer").finish_non_exhaustive()
    }
}

impl McpServer {
    /// A server over the backend of one transport.
    pub fn new(backend: Arc<dyn McpBackend>) -> Self {
        Self {
            backend,
            confirmations: Arc::default(),
            given: Arc::default(),
            evaluations: Arc::default(),
            watches: Arc::default(),
            shares: watch::shares(),
        }
    }

    /// The same server for another client, with subscriptions of its own.
    pub(super) fn for_another(&self) -> Self {
        Self { watches: Arc::default(), ..self.clone() }
    }

    fn client(&self, beside: &Extensions) -> Result<McpClient, ErrorData> {
        self.backend.client(beside).map_err(|why| ErrorData::invalid_request(why, None))
    }

    fn call<'a>(
        &'a self,
        context: &'a RequestContext<RoleServer>,
        arguments: JsonObject,
    ) -> Result<ToolCall<'a>, ErrorData> {
        Ok(ToolCall {
            backend: self.backend.as_ref(),
            client: self.client(&context.extensions)?,
            confirmations: &self.confirmations,
            given: &self.given,
            evaluations: &self.evaluations,
            context,
            arguments,
        })
    }

    fn offered(&self, row: &tools::ToolRow) -> bool {
        !row.reads_files || self.backend.reads_files()
    }
}

fn cut_uri(uri: &str) -> String {
    uri.chars().take(200).collect()
}

/// Failures on the side of the supervisor.
const OURS: &[Code] = &[Code::Internal, Code::StorageUnavailable, Code::CapacityExceeded, Code::ShuttingDown];

/// A failure outside of a tool, as an error of JSON-RPC.
fn refused(failure: ToolError) -> ErrorData {
    match failure {
        ToolError::Reported { message, code, details } => {
            let data = json!({ "code": code, "details": details });
            if code.ends_with("NOT_FOUND") {
                ErrorData::resource_not_found(message, Some(data))
            } else if OURS.iter().any(|ours| ours.as_str() == code) {
                ErrorData::internal_error(message, Some(data))
            } else {
                ErrorData::invalid_params(message, Some(data))
            }
        }
        ToolError::Cancelled => ErrorData::internal_error("the request was cancelled", None),
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_tools()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tasks()
            .build();
        let mut about = Implementation::new("vm-system", env!("CARGO_PKG_VERSION"));
        about.title = Some("vm-system: durable programs and sandboxed JavaScript".to_owned());
        ServerConfig::new(capabilities).with_server_info(about).with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let sets = self.client(&context.extensions)?.toolsets;
        let offered = tools::TOOLS.iter().filter(|row| self.offered(row) && row.is_in(&sets));
        Ok(ListToolsResult::with_all_items(offered.map(tools::ToolRow::listed).collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::find(name).filter(|row| self.offered(row)).map(tools::ToolRow::listed)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let row = tools::find(&request.name).filter(|row| self.offered(row)).ok_or_else(|| {
            let name: String = request.name.chars().take(100).collect();
            ErrorData::invalid_params(format!("Unknown tool: {name}"), Some(json!({ "tool": name })))
        })?;
        let arguments = request.arguments.unwrap_or_default();
        let call = self.call(&context, arguments)?;
        let as_task = call.is_as_task();
        let outcome = (row.run)(&call).await;
        if as_task && let Some(id) = outcome.as_ref().ok().and_then(|done| done.field("id")) {
            let op = RunGet { execution: id.to_owned() };
            let run = call.perform(op).await.map_err(refused)?;
            return Ok(CreateTaskResult::new(background::started(&run)).into());
        }
        Ok(output::result(outcome).into())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let call = self.call(&context, JsonObject::new())?;
        background::get(&call, request.task_id).await.map_err(refused)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let call = self.call(&context, JsonObject::new())?;
        background::update(&call, request.task_id, request.input_responses).await.map_err(refused)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let call = self.call(&context, JsonObject::new())?;
        background::cancel(&call, request.task_id).await.map_err(refused)
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let call = self.call(&context, JsonObject::new())?;
        let uri = request.uri;
        let Some(execution) = resources::execution_of(&uri) else {
            let why = "only executions can be watched: vm://executions/{id}";
            return Err(ErrorData::invalid_params(why, Some(json!({ "uri": cut_uri(&uri) }))));
        };
        let now = call.perform(RunGet { execution }).await.map_err(refused)?;
        let client = (call.client, &self.shares);
        if self.watches.add(Arc::clone(&self.backend), client, uri, &now, context.peer.clone()) {
            return Ok(());
        }
        Err(too_many())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.watches.remove(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let named = requested.resource_subscriptions.iter().flatten();
        let uris = named.filter(|uri| resources::execution_of(uri).is_some()).take(watch::WATCHED).cloned();
        Some(SubscriptionFilter::builder().resource_subscriptions(uris).build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let client = self.client(&context.request_context().extensions)?;
        let uris = context.accepted().resource_subscriptions.clone().unwrap_or_default();
        let client = (client, &self.shares);
        let notifying =
            watch::notify_request(Arc::clone(&self.backend), client, uris, context.sink().clone());
        tokio::select! {
            () = context.cancelled() => Ok(()),
            fits = notifying => if fits { Ok(()) } else { Err(too_many()) },
        }
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method: String = request.method.chars().take(100).collect();
        let is_newer =
            context.protocol_version().is_some_and(|version| version >= ProtocolVersion::NO_INITIALIZE);
        let is_removed = is_newer && OLDER_METHODS.contains(&method.as_str());
        if !is_removed && KNOWN_METHODS.contains(&method.as_str()) {
            // The method exists, its parameters are invalid.
            let why = format!("Invalid parameters of {method}");
            return Err(ErrorData::invalid_params(why, Some(json!({ "method": method }))));
        }
        Err(method_not_found(&method))
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::list()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let found = prompts::get(&request.name, &request.arguments.unwrap_or_default());
        found.map(Into::into).map_err(|why| ErrorData::invalid_params(why, None))
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let call = self.call(&context, JsonObject::new())?;
        completions::complete(&call, &request).await.map(CompleteResult::new).map_err(refused)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let call = self.call(&context, JsonObject::new())?;
        let listed = resources::list(&call).await.map_err(refused)?;
        Ok(ListResourcesResult::with_all_items(listed))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let call = self.call(&context, JsonObject::new())?;
        let read = resources::read(&call, &request.uri).await;
        let read = read.map_err(|failure| {
            let mut error = refused(failure);
            if let Some(Value::Object(data)) = &mut error.data {
                data.insert("uri".to_owned(), Value::from(cut_uri(&request.uri)));
            }
            error
        })?;
        Ok(read.into())
    }
}

/// The error for a method that does not exist, or does not any more.
pub(super) fn method_not_found(method: &str) -> ErrorData {
    let why = format!("Method not found: {method}");
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, why, Some(json!({ "method": method })))
}

fn too_many() -> ErrorData {
    let (client, owner) = (watch::WATCHED, watch::WATCHED_BY_OWNER);
    let why =
        format!("at most {client} documents can be watched at a time, by all clients of an owner {owner}");
    ErrorData::invalid_request(why, None)
}
