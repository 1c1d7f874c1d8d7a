//! Remedies of an agent for an evaluation that failed: how to write what only modules may have, and how to get the right to
//! change files. Says nothing about other failures.

use crate::mcp::call::ToolCall;
use crate::mcp::output::ToolError;
use vm_system_protocol::control::SessionGet;
use vm_system_protocol::model::{EventPayload, Execution, NoteCode};

/// About `import` in the input of a session, as `vm-system run -e` says it.
const MODULE_HINT: &str = "Hint: `import` and `export` are allowed only in modules: write `await import(\"…\")` or `require(\"…\")`.";

/// How sessions of a template get the right to change files.
fn write_hint(template: &str) -> String {
    format!(
        "Hint: sessions of this template may not change files. Your user grants it to new sessions with \
         `vm-system template add-capability {template} --kind fs --name write --enabled`; then create another session with \
         session_create."
    )
}

/// The hint for an execution that has ended. `is_module`: its text imports or exports as modules do.
pub(super) async fn hint_after(
    call: &ToolCall<'_>,
    execution: &Execution,
    is_module: bool,
) -> Result<Option<String>, ToolError> {
    let is_syntax_error = execution.error.as_ref().is_some_and(|error| error.code == "SYNTAX_ERROR");
    if is_syntax_error && is_module {
        return Ok(Some(MODULE_HINT.to_owned()));
    }
    // Also where the script caught the error.
    let is_refused_write = |payload: &EventPayload| {
        matches!(payload, EventPayload::System { code: Some(NoteCode::NoChanges), .. })
    };
    let events = execution.events.as_deref().unwrap_or_default();
    if !events.iter().any(|event| is_refused_write(&event.payload)) {
        return Ok(None);
    }
    match call.perform(SessionGet { session: execution.session_id.to_string() }).await {
        Ok(session) => Ok(Some(write_hint(&session.template_id.to_string()))),
        // The evaluation's session was deleted meanwhile; it has its result nevertheless.
        Err(ToolError::Reported { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
