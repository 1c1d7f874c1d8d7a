//! Routes of programs.

use super::endpoint::Paged;
use super::envelope::{DoneStatus, RestError, RestResult, created, ok};
use super::filters::{ProgramQuery, RunQuery};
use super::input::{JsonBody, PathSegments, required};
use super::pages::{self, PageQuery};
use super::query::{Positive, Query, query};
use super::request::RestRequest;
use super::shapes::{BlockId, Name, NotEmpty, Object, SourceFiles, SourceName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use vm_system_protocol::control::{
    CompiledPlan, PlanCheck, PlanLoad, ProgramDelete, ProgramGet, ProgramLoad, ProgramVersions,
};
use vm_system_protocol::ids::ProgramId;
use vm_system_protocol::model::{Program, ProgramVersion, Run};

/// A new program; under the name of an existing one, its next version.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-forms" = {
    "ProgramOfSource": { "required": ["source"], "without": ["plan", "done"] },
    "ProgramOfPlan": { "required": ["plan"], "without": ["source", "typescript", "file", "files"] },
}))]
pub(super) struct ProgramBody {
    /// Unique among the owner's programs.
    #[schemars(with = "Name")]
    name: Option<String>,
    /// Source text; absent if `plan` is given.
    source: Option<String>,
    /// A compiled plan, as `POST /plans` returns it: the program is the built-in one that goes through the plan.
    #[schemars(with = "Option<Object>")]
    plan: Option<Box<RawValue>>,
    /// Ids of the plan's blocks that are already done.
    #[schemars(with = "Option<Vec<BlockId>>")]
    done: Option<Vec<String>>,
    /// Whether the source is TypeScript (true) or JavaScript (false). Absent: as the name ends (`.ts`, `.js`), otherwise JavaScript,
    /// unless the source has syntax of TypeScript and compiles only so.
    typescript: Option<bool>,
    /// Name of the source's file, which it and its other files may import; absent: the last part
    /// of the program's name.
    #[schemars(with = "Option<SourceName>")]
    file: Option<String>,
    /// Texts of the other files that the program imports, by their names relative to the source's folder: `lib/tax.ts`.
    #[schemars(with = "Option<SourceFiles>")]
    files: Option<BTreeMap<String, String>>,
}

pub(super) async fn list(
    request: RestRequest,
    Query(query): Query<ProgramQuery>,
) -> RestResult<Vec<Program>, Paged> {
    let filter = query.filter();
    let page = filter.page;
    let programs = request.op(filter).await?;
    pages::response(page, &programs)
}

pub(super) async fn load(request: RestRequest, JsonBody(body): JsonBody<ProgramBody>) -> RestResult<Program> {
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
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PlanBody {
    /// Name of its file.
    #[schemars(with = "Option<NotEmpty>")]
    file: Option<String>,
    #[schemars(with = "NotEmpty")]
    text: Option<String>,
    /// Texts of the files that the plan lists, by the listed names.
    files: Option<BTreeMap<String, String>>,
}

pub(super) async fn check_plan(
    request: RestRequest,
    JsonBody(body): JsonBody<PlanBody>,
) -> RestResult<CompiledPlan> {
    let plan = PlanCheck {
        file: body.file.unwrap_or_else(|| "plan.md".to_owned()),
        text: body.text.ok_or_else(|| RestError::invalid("text is missing"))?,
        parts: body.files.unwrap_or_default().into_iter().collect(),
    };
    ok(&request.op(plan).await?)
}

query! {
    /// The query of a program.
    VersionQuery {
        /// The source of this version; absent: the newest.
        version: Option<Positive>,
    }
}

pub(super) async fn get(
    request: RestRequest,
    PathSegments(program): PathSegments<String>,
    Query(query): Query<VersionQuery>,
) -> RestResult<Program> {
    let version = query.version.map(|Positive(version)| version);
    ok(&request.op(ProgramGet { program, version }).await?)
}

pub(super) async fn versions(
    request: RestRequest,
    PathSegments(program): PathSegments<String>,
    Query(query): Query<PageQuery>,
) -> RestResult<Vec<ProgramVersion>, Paged> {
    let page = pages::requested(query.limit, query.cursor, pages::MOST);
    let versions = request.op(ProgramVersions { program, page }).await?;
    pages::response(page, &versions)
}

/// A deleted program.
#[derive(Serialize, JsonSchema)]
pub(super) struct ProgramDeleted {
    status: DoneStatus,
    program_id: ProgramId,
}

pub(super) async fn delete(
    request: RestRequest,
    PathSegments(program): PathSegments<String>,
) -> RestResult<ProgramDeleted> {
    let program = request.op(ProgramDelete { program }).await?;
    ok(&ProgramDeleted { status: DoneStatus::Ok, program_id: program.id })
}

pub(super) async fn executions(
    request: RestRequest,
    PathSegments(program): PathSegments<String>,
    Query(query): Query<RunQuery>,
) -> RestResult<Vec<Run>, Paged> {
    let filter = query.filter(program);
    let page = filter.page;
    let runs = request.op(filter).await?;
    pages::response(page, &runs)
}
