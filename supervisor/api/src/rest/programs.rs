//! Routes of programs.

use super::envelope::{RestError, RestResult, created, ok};
use super::input::{JsonBody, PathSegments, QueryParams, required};
use super::request::RestRequest;
use super::{filters, pages};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use vm_system_protocol::control::{
    PlanCheck, PlanLoad, ProgramDelete, ProgramGet, ProgramLoad, ProgramVersions,
};
use vm_system_protocol::ids::ProgramId;

/// A new program; under the name of an existing one, its next version.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct NewProgram {
    /// Unique among the owner's programs.
    name: Option<String>,
    /// Source text; absent if `plan` is given.
    source: Option<String>,
    /// A compiled plan, as `POST /plans` returns it: the program is the built-in one that goes through the plan.
    plan: Option<Box<RawValue>>,
    /// Ids of the plan's blocks that are already done.
    done: Option<Vec<String>>,
    /// Whether the source is TypeScript (true) or JavaScript (false); absent: both are tried.
    typescript: Option<bool>,
    /// Name of the source's file, which it and its other files may import; absent: the program's name.
    file: Option<String>,
    /// Texts of the other files that the program imports, by their names relative to the source's folder.
    files: Option<BTreeMap<String, String>>,
}

/// Programs, newest first, without sources; with filters.
pub(super) async fn list(request: RestRequest, params: QueryParams) -> RestResult {
    let page = pages::requested(&params, pages::MOST)?;
    let filter = filters::programs(&params, page)?;
    let programs = request.op(filter).await?;
    pages::response(page, &programs)
}

/// Compile a source text and store it as a program.
pub(super) async fn load(request: RestRequest, JsonBody(body): JsonBody<NewProgram>) -> RestResult {
    let name = required("name", body.name)?;
    let program = match (body.source, body.plan) {
        (Some(source), None) => {
            let (typescript, file) = (body.typescript, body.file);
            let files = body.files.unwrap_or_default().into_iter().collect();
            request.op(ProgramLoad { name, source, typescript, file, files }).await?
        }
        (None, Some(_)) if body.file.is_some() || body.files.is_some() => {
            return Err(RestError::invalid("`file` and `files` belong to a source, not to a plan"));
        }
        (None, Some(plan)) => {
            let (plan, done) = (plan.get().to_owned(), body.done.unwrap_or_default());
            request.op(PlanLoad { name, plan, done }).await?
        }
        (None, None) => return Err(RestError::invalid("source is missing")),
        (Some(_), Some(_)) => return Err(RestError::invalid("a program has a source or a plan, not both")),
    };
    created(&program)
}

/// A plan as Markdown.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PlanBody {
    /// Name of its file.
    file: Option<String>,
    text: Option<String>,
    /// Texts of the files that the plan lists, by the listed names.
    files: Option<BTreeMap<String, String>>,
}

/// Compile a plan, or report its errors; nothing is stored.
pub(super) async fn check_plan(request: RestRequest, JsonBody(body): JsonBody<PlanBody>) -> RestResult {
    let plan = PlanCheck {
        file: body.file.unwrap_or_else(|| "plan.md".to_owned()),
        text: body.text.ok_or_else(|| RestError::invalid("text is missing"))?,
        parts: body.files.unwrap_or_default().into_iter().collect(),
    };
    ok(&request.op(plan).await?)
}

/// One program with its source, by id or name.
pub(super) async fn get(
    request: RestRequest,
    PathSegments(program): PathSegments<String>,
    params: QueryParams,
) -> RestResult {
    let version = params.number("version", 1)?;
    ok(&request.op(ProgramGet { program, version }).await?)
}

/// Versions of a program, newest first, without sources.
pub(super) async fn versions(
    request: RestRequest,
    PathSegments(program): PathSegments<String>,
    params: QueryParams,
) -> RestResult {
    let page = pages::requested(&params, pages::MOST)?;
    let versions = request.op(ProgramVersions { program, page }).await?;
    pages::response(page, &versions)
}

#[derive(Serialize)]
struct Deleted {
    status: &'static str,
    program_id: ProgramId,
}

/// Delete a program; its executions continue, its name is free again.
pub(super) async fn delete(request: RestRequest, PathSegments(program): PathSegments<String>) -> RestResult {
    let program = request.op(ProgramDelete { program }).await?;
    ok(&Deleted { status: "ok", program_id: program.id })
}

/// Executions of a program, newest first, without tasks; with filters.
pub(super) async fn executions(
    request: RestRequest,
    PathSegments(program): PathSegments<String>,
    params: QueryParams,
) -> RestResult {
    runs(&request, Some(program), &params).await
}

/// Executions of one program, or of all.
pub(super) async fn runs(request: &RestRequest, program: Option<String>, params: &QueryParams) -> RestResult {
    let page = pages::requested(params, pages::MOST)?;
    let filter = filters::runs(params, program, page)?;
    let runs = request.op(filter).await?;
    pages::response(page, &runs)
}
