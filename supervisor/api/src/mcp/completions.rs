//! Completion of the arguments of prompts and of resource templates: names of the client's programs and executions. Other arguments
//! are free text, for which there are no suggestions; neither are there any for a prompt or a resource that does not exist.

use super::call::ToolCall;
use super::output::ToolError;
use super::prompts;
use super::resources;
use super::views;
use rmcp::model::{CompleteRequestParams, CompletionInfo, Reference};
use std::collections::HashSet;
use vm_system_protocol::control::{ListPage, ProgramList, RunList};

/// Newest objects among which names are looked for.
const SEARCHED: u32 = 1_000;

/// The kind of thing that an argument names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Completable {
    Program,
    Execution,
}

/// The names that contain the argument's text, those that begin with it first, each group newest first.
pub(super) async fn complete(
    call: &ToolCall<'_>,
    request: &CompleteRequestParams,
) -> Result<CompletionInfo, ToolError> {
    let argument = request.argument.name.as_str();
    // A resource is addressed by its id, or by a name that needs no escapes.
    let (kind, is_address) = match &request.r#ref {
        Reference::Prompt(prompt) => (prompts::completable(&prompt.name, argument), false),
        Reference::Resource(resource) => (resources::completable(&resource.uri, argument), true),
        _ => (None, false),
    };
    let names = match kind {
        None => Vec::new(),
        Some(Completable::Program) => programs(call, is_address).await?,
        Some(Completable::Execution) => {
            let program = request.context.as_ref().and_then(|context| context.get_argument("programId"));
            executions(call, program.cloned().filter(|name| !name.is_empty()), is_address).await?
        }
    };
    Ok(matching(names, &request.argument.value))
}

async fn programs(call: &ToolCall<'_>, is_address: bool) -> Result<Vec<String>, ToolError> {
    let programs =
        call.perform(ProgramList { page: ListPage::first(SEARCHED), ..ProgramList::default() }).await?;
    let addressed = |name: String, id: String| if is_address { addressable(name, id) } else { name };
    Ok(programs.into_iter().map(|program| addressed(program.name, program.id.to_string())).collect())
}

async fn executions(
    call: &ToolCall<'_>,
    program: Option<String>,
    is_address: bool,
) -> Result<Vec<String>, ToolError> {
    let filter = RunList { program, page: ListPage::first(SEARCHED), ..RunList::default() };
    let runs = match call.perform(filter).await {
        Ok(runs) => runs,
        // The program of the context does not exist (yet): it has no executions.
        Err(ToolError::Reported { code, .. }) if code.ends_with("NOT_FOUND") => Vec::new(),
        Err(error) => return Err(error),
    };
    let named = runs.iter().map(|run| {
        let name = views::name_of(run);
        if is_address { addressable(name, run.execution.id.to_string()) } else { name }
    });
    Ok(named.collect())
}

fn addressable(name: String, id: String) -> String {
    if resources::is_plain(&name) { name } else { id }
}

/// The first names that contain the text, whatever their case, and how many there are.
fn matching(names: Vec<String>, text: &str) -> CompletionInfo {
    let text = text.to_lowercase();
    let mut seen = HashSet::new();
    let (mut first, mut others) = (Vec::new(), Vec::new());
    for name in names {
        let lower = name.to_lowercase();
        if !lower.contains(&text) || !seen.insert(name.clone()) {
            continue;
        }
        if lower.starts_with(&text) { first.push(name) } else { others.push(name) }
    }
    first.append(&mut others);
    let mut found = CompletionInfo::default();
    found.total = u32::try_from(first.len()).ok();
    found.has_more = Some(first.len() > CompletionInfo::MAX_VALUES);
    first.truncate(CompletionInfo::MAX_VALUES);
    found.values = first;
    found
}

#[cfg(test)]
mod tests {
    use super::matching;
    use rmcp::model::CompletionInfo;

    #[test]
    fn names_that_begin_with_the_text_come_first_and_there_are_at_most_a_hundred() {
        let names = ["the sum", "Sum", "other", "sum-2", "Sum"].map(str::to_owned).to_vec();
        let found = matching(names.clone(), "sum");
        assert_eq!(found.values, ["Sum", "sum-2", "the sum"]);
        assert_eq!((found.total, found.has_more), (Some(3), Some(false)));
        assert_eq!(matching(names, "").values.len(), 4);
        let many = matching((0..250).map(|number| number.to_string()).collect(), "");
        assert_eq!((many.values.len(), many.total), (CompletionInfo::MAX_VALUES, Some(250)));
        assert_eq!(many.has_more, Some(true));
    }
}
