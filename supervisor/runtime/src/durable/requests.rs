//! The HTTP requests of durable programs: the same judge, egress process, records and audit lines as those of sessions. The whole
//! body of a response is received before the program goes on. A request whose outcome is unknown, because a process was lost, is
//! repeated with the same header field `idempotency-key`: after a restart by the state machine, and here if the egress process ends.

use super::files::Used;
use super::live::lock;
use super::task::ProgramContext;
use crate::egress::HttpClient;
use crate::memory::Reservation;
use crate::shares::{Holder, Share};
use crate::task::RuntimeContext;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use vm_system_core::durable::{DurableInput, RequestEffect};
use vm_system_policy::{Denial, HttpPermit, judge_http};
use vm_system_protocol::durable::{HttpResponse, REQUEST_BODY_BYTES, RESPONSE_BODY_BYTES};
use vm_system_protocol::egress::{HttpCall, HttpHeader, HttpProgress, HttpRequest};
use vm_system_protocol::ids::{ExecutionId, SessionId};
use vm_system_protocol::limits::HTTP_PIECE_BYTES;
use vm_system_protocol::model::{ConsoleLevel, EventPayload, HttpRecord};
use vm_system_protocol::worker::HostError;
use vm_system_record::Owner as Principal;

/// How long a request without an outcome is repeated.
const RETRY_FOR: Duration = Duration::from_secs(90);
/// The first pause before a repetition, …
const PAUSE: Duration = Duration::from_millis(10);
/// … which doubles up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A body up to this size is received without a reservation of memory (bytes).
const UNRESERVED_BYTES: usize = 1 << 20;

/// The header field with the id of the effect, by which a server recognizes a repetition.
const KEY: &str = "idempotency-key";

/// The number of the exchange: a program has one at a time, each with a client of its own.
const EXCHANGE: u64 = 1;

/// Makes a request; the result, with the events about it.
pub(super) async fn request(
    shared: Arc<RuntimeContext>,
    (execution, session): (ExecutionId, SessionId),
    context: ProgramContext,
    used: Used,
    reservation: Reservation,
    work: RequestEffect,
) -> DurableInput {
    let RequestEffect { mut request, effect } = work;
    if !request.headers.iter().any(|header| header.name.eq_ignore_ascii_case(KEY)) {
        let value = format!("{execution}-{effect}").into_bytes();
        request.headers.push(HttpHeader { name: KEY.to_owned(), value });
    }
    let holder = shared.holder(&context.owner);
    let requests = Requests { shared, session, context, used, reservation, holder };
    let (until, mut pause) = (Instant::now() + RETRY_FOR, PAUSE);
    let mut notes = Vec::new();
    loop {
        let result = requests.attempt((*request).clone(), &mut notes).await;
        let lost = result.as_ref().err().filter(|error| error.code == "ERR_NET_EGRESS_LOST");
        if result.is_err() && requests.shared.egress.is_stopped() {
            // The supervisor is stopping: the program gets no result, and repeats the request when it resumes.
            return std::future::pending().await;
        }
        if lost.is_some() && Instant::now() + pause < until {
            tracing::debug!(%session, "a request whose outcome is unknown is repeated");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            continue;
        }
        return DurableInput::Responded { result, notes };
    }
}

struct Requests {
    shared: Arc<RuntimeContext>,
    session: SessionId,
    context: ProgramContext,
    used: Used,
    reservation: Reservation,
    holder: Holder,
}

/// A client whose requests are in the audit log, also those that are given up because the execution or the supervisor ends.
struct Audited {
    client: HttpClient,
    shared: Arc<RuntimeContext>,
    owner: Principal,
    session: SessionId,
}

impl Audited {
    fn records(&self) -> Vec<HttpRecord> {
        let records = self.client.end();
        self.shared.audit_http(&self.owner, self.session, records.clone());
        records
    }
}

impl Drop for Audited {
    fn drop(&mut self) {
        self.records();
    }
}

impl Requests {
    async fn attempt(
        &self,
        request: HttpRequest,
        notes: &mut Vec<EventPayload>,
    ) -> Result<HttpResponse, HostError> {
        let audited = Audited {
            client: HttpClient::default(),
            shared: Arc::clone(&self.shared),
            owner: self.context.owner.clone(),
            session: self.session,
        };
        let mut exchange = Exchange { requests: self, client: &audited.client, notes, left: Vec::new() };
        let result = exchange.run(request).await;
        let received = result.as_ref().map_or(0, |response| response.body.len());
        let failed = result.is_err();
        lock(&self.used).0.answered("http", received as u64, failed);
        notes.extend(audited.records().into_iter().map(|record| EventPayload::Http(Box::new(record))));
        result
    }

    /// The permit of a call, or the error of its denial with the event about it.
    fn judge(&self, call: HttpCall, notes: &mut Vec<EventPayload>) -> Result<HttpPermit, HostError> {
        let mut used = lock(&self.used);
        let usage = &mut used.0;
        judge_http(&self.context.policy, call, usage).map_err(|Denial { module, name, error, code }| {
            if usage.denied(module, name) {
                let message = format!("denied: {module}.{name}: {}", error.message);
                notes.push(EventPayload::System { message, level: ConsoleLevel::Warn, code });
            }
            error
        })
    }
}

/// One request that is being made.
struct Exchange<'a> {
    requests: &'a Requests,
    client: &'a HttpClient,
    notes: &'a mut Vec<EventPayload>,
    /// The part of the request's body that is not sent yet.
    left: Vec<u8>,
}

impl Exchange<'_> {
    async fn run(&mut self, mut request: HttpRequest) -> Result<HttpResponse, HostError> {
        self.left = request.data.split_off(request.data.len().min(HTTP_PIECE_BYTES));
        request.end = self.left.is_empty();
        self.call(HttpCall::Open { exchange: EXCHANGE, request }).await?;
        let mut response =
            HttpResponse { status: 0, reason: String::new(), headers: Vec::new(), body: Vec::new() };
        let mut held: Option<Share> = None;
        loop {
            if response.body.len() > UNRESERVED_BYTES && held.is_none() {
                // For all of it: who holds a part waits for no other part. Until then no piece is received.
                held =
                    self.requests.shared.budget.wait(&self.requests.holder, RESPONSE_BODY_BYTES as u64).await;
            }
            for one in self.client.progress(EXCHANGE).await {
                match one.progress {
                    HttpProgress::Sent => self.send().await?,
                    HttpProgress::Head { status, reason, headers, .. } => {
                        (response.status, response.reason, response.headers) = (status, reason, headers);
                    }
                    HttpProgress::Data(data) => {
                        if response.body.len() + data.len() > RESPONSE_BODY_BYTES {
                            return Err(too_large());
                        }
                        response.body.extend(data);
                    }
                    HttpProgress::End => {
                        self.requests.reservation.hold(held);
                        return Ok(response);
                    }
                    HttpProgress::Failed(error) => return Err(error),
                }
            }
        }
    }

    async fn send(&mut self) -> Result<(), HostError> {
        if self.left.is_empty() {
            return Ok(());
        }
        let rest = self.left.split_off(self.left.len().min(HTTP_PIECE_BYTES));
        let data = std::mem::replace(&mut self.left, rest);
        let end = self.left.is_empty();
        self.call(HttpCall::Send { exchange: EXCHANGE, data, end }).await
    }

    async fn call(&mut self, call: HttpCall) -> Result<(), HostError> {
        let Requests { shared, holder, .. } = self.requests;
        let mut permit = self.requests.judge(call, self.notes)?;
        if let HttpPermit::Open { allowed, .. } = &mut permit {
            // Bodies of programs are whole, and part of their state.
            let terms = &mut allowed.request.terms;
            terms.max_request_bytes = terms.max_request_bytes.min(REQUEST_BODY_BYTES as u64);
            terms.max_response_bytes = terms.max_response_bytes.min(RESPONSE_BODY_BYTES as u64);
        }
        self.client.call(&shared.egress, holder.clone(), permit).await.map(drop)
    }
}

/// The egress process has sent more than it may.
fn too_large() -> HostError {
    let kib = RESPONSE_BODY_BYTES / 1024;
    let message = format!("the body of the response is larger than {kib} KiB");
    HostError { code: "ERR_NET_LIMIT".to_owned(), message }
}
