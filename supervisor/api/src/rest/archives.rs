//! Exported programs and executions: streamed in pieces from the store and to it; a whole file is never in memory.

use super::App;
use super::envelope::{RestError, RestResult, created};
use super::input::{PathSegments, is_json};
use super::query::{Query, query};
use super::request::RestRequest;
use super::shapes::{ArchiveLines, FolderPath, Name, Uuid};
use axum::body::{Body, Bytes};
use axum::extract::FromRequest;
use axum::http::{HeaderValue, Request, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::BodyExt as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;
use vm_system_protocol::control::{
    ArchiveExport, ArchiveKind, ExportCursor, ExportPart, ImportBegin, ImportDrop, ImportEnd, ImportPart,
    ImportedObject, PART_BYTES,
};
use vm_system_protocol::model::{Program, Run};
use vm_system_runtime::shares::Share;

/// Each piece of this size must arrive within [`RestLimits::body`](super::RestLimits::body) (bytes).
const PIECE_BYTES: usize = 128 << 10;

pub(super) async fn export_program(
    request: RestRequest,
    PathSegments(program): PathSegments<String>,
) -> RestResult<ArchiveLines> {
    export(request, ArchiveKind::Program, program).await
}

pub(super) async fn export_execution(
    request: RestRequest,
    PathSegments(execution): PathSegments<String>,
) -> RestResult<ArchiveLines> {
    export(request, ArchiveKind::Execution, execution).await
}

query! {
    /// The query of an import of a program.
    ProgramImportQuery {
        /// Name to use instead of the name in the file.
        #[schemars(with = "Name")]
        name: Option<String>,
    }
}

query! {
    /// The query of an import of an execution.
    ExecutionImportQuery {
        /// Name to use instead of the name in the file.
        #[schemars(with = "Name")]
        name: Option<String>,
        /// Name of the program, instead of the name in the file.
        #[schemars(with = "Name")]
        program_name: Option<String>,
        /// A template of engine `cvm`; absent: the built-in one.
        #[schemars(with = "Uuid")]
        template_id: Option<String>,
        /// The folder whose files the program may use; absent: none.
        #[schemars(with = "FolderPath")]
        worktree_path: Option<String>,
        /// For administrators: the user with whose rights the folder is used, a name or a number; absent: the caller's own.
        as_user: Option<String>,
    }
}

pub(super) async fn import_program(
    request: RestRequest,
    Query(query): Query<ProgramImportQuery>,
    upload: Upload,
) -> RestResult<Program> {
    let new = ImportBegin { kind: Some(ArchiveKind::Program), name: query.name, ..ImportBegin::default() };
    match import(request, new, upload).await? {
        ImportedObject::Program(program) => created(&program),
        ImportedObject::Run(_) => Err(RestError::internal("the import of a program has made an execution")),
    }
}

pub(super) async fn import_execution(
    request: RestRequest,
    Query(query): Query<ExecutionImportQuery>,
    upload: Upload,
) -> RestResult<Run> {
    let new = ImportBegin {
        kind: Some(ArchiveKind::Execution),
        name: query.name,
        program_name: query.program_name,
        template: query.template_id,
        worktree_path: query.worktree_path,
        as_user: query.as_user,
    };
    match import(request, new, upload).await? {
        ImportedObject::Run(run) => created(&run),
        ImportedObject::Program(_) => {
            Err(RestError::internal("the import of an execution has made a program alone"))
        }
    }
}

async fn part(
    request: &RestRequest,
    kind: ArchiveKind,
    reference: &str,
    after: Option<ExportCursor>,
) -> Result<ExportPart, RestError> {
    let op = ArchiveExport { kind, reference: reference.to_owned(), after };
    request.op(op).await
}

/// An error of the first part is a refusal; a later one ends the response early.
async fn export(request: RestRequest, kind: ArchiveKind, reference: String) -> RestResult<ArchiveLines> {
    let share = request.stream_share()?;
    let first = part(&request, kind, &reference, None).await?;
    let mut piece = Ok(request.reserved_part(Bytes::from(first.text))?);
    let mut next = first.next;
    let (sender, receiver) = mpsc::channel(1);
    let app = Arc::clone(&request.app);
    app.state.requests.spawn(async move {
        loop {
            if sender.send(piece).await.is_err() {
                return;
            }
            let Some(place) = next.take() else { return };
            let read = part(&request, kind, &reference, Some(place)).await;
            let read = read.and_then(|part| Ok((request.reserved_part(Bytes::from(part.text))?, part.next)));
            piece = match read {
                Ok((bytes, behind)) => {
                    next = behind;
                    Ok(bytes)
                }
                Err(_) => Err(std::io::Error::other("the export failed")),
            };
        }
    });
    let mut response = Response::new(Body::new(Pieces { receiver, _share: share }));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response.into())
}

/// The body of an export.
struct Pieces {
    receiver: mpsc::Receiver<Result<Bytes, std::io::Error>>,
    _share: Share,
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        self.receiver.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}

/// The body of an import.
pub(super) struct Upload {
    body: Body,
    deadline: Duration,
}

impl FromRequest<Arc<App>> for Upload {
    type Rejection = RestError;

    async fn from_request(request: Request<Body>, app: &Arc<App>) -> Result<Self, RestError> {
        let (parts, body) = request.into_parts();
        is_json(&parts.headers)?;
        Ok(Self { body, deadline: app.options.limits.body })
    }
}

impl Upload {
    /// The next piece; empty after the last.
    async fn piece(&mut self) -> Result<Vec<u8>, RestError> {
        let gather = async {
            let mut piece = Vec::new();
            while piece.len() < PIECE_BYTES {
                match self.body.frame().await {
                    Some(Ok(frame)) => piece.extend_from_slice(frame.data_ref().map_or(&[], |data| data)),
                    Some(Err(error)) => {
                        let message = format!("the body cannot be read: {error}");
                        return Err(RestError::request(StatusCode::BAD_REQUEST, message));
                    }
                    None => break,
                }
            }
            Ok(piece)
        };
        timeout(self.deadline, gather).await.map_err(|_| {
            RestError::request(StatusCode::REQUEST_TIMEOUT, "the body was not complete in time")
        })?
    }
}

/// An import that has begun. Unless it is complete, it is given up when this is dropped: with an error, or because the client has
/// gone. Otherwise it would occupy a place of its owner until it is idle for long.
struct Incomplete<'a> {
    request: &'a RestRequest,
    import: Option<String>,
}

impl Drop for Incomplete<'_> {
    fn drop(&mut self) {
        if let Some(import) = self.import.take() {
            self.request.afterwards(ImportDrop { import });
        }
    }
}

async fn import(
    request: RestRequest,
    new: ImportBegin,
    mut upload: Upload,
) -> Result<ImportedObject, RestError> {
    let import = request.op(new).await?;
    let mut incomplete = Incomplete { request: &request, import: Some(import.clone()) };
    let mut at = 0;
    loop {
        let piece = upload.piece().await?;
        if piece.is_empty() {
            break;
        }
        for bytes in piece.chunks(PART_BYTES) {
            let op = ImportPart { import: import.clone(), at, bytes: bytes.to_vec() };
            request.op(op).await?;
            at += bytes.len() as u64;
        }
    }
    // From here on the verb has the file, to its end.
    incomplete.import = None;
    request.op(ImportEnd { import }).await
}
