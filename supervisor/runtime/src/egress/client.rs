//! The exchanges of one session. The numbers of a worker mean exchanges of its own session and nothing else; what the egress process
//! reports is checked against the state of the exchange.

use super::process::EgressProcess;
use super::{Egress, unavailable};
use crate::shares::{Holder, Share};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};
use vm_system_policy::{AllowedRequest, HttpPermit};
use vm_system_protocol::counted::counted;
use vm_system_protocol::egress::{ExchangeProgress, HttpHeader, HttpProgress, HttpReply, ToEgress};
use vm_system_protocol::limits::{HTTP_HEADER_BYTES, HTTP_HEADERS, HTTP_PIECE_BYTES, HTTP_WAIT_MS};
use vm_system_protocol::model::HttpRecord;
use vm_system_protocol::worker::HostError;

/// Pieces of responses in one reply to the worker.
const PIECES_PER_REPLY: usize = 16;
/// Longest message of an error (bytes).
const MESSAGE_BYTES: usize = 2_000;

/// The HTTP requests of one session.
#[derive(Debug, Default)]
pub(crate) struct HttpClient {
    exchanges: Arc<Exchanges>,
}

/// The exchanges of one session.
#[derive(Debug, Default)]
pub(super) struct Exchanges {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    under_way: HashMap<u64, Exchange>,
    /// The exchanges whose end the worker has not received: what it holds here counts as a request.
    ended: HashMap<u64, Share>,
    /// The progress that the worker has not received yet.
    progress: VecDeque<ExchangeProgress>,
    /// Of exchanges that have ended.
    records: Vec<HttpRecord>,
}

/// One request with its response.
#[derive(Debug)]
struct Exchange {
    process: Arc<EgressProcess>,
    number: u64,
    record: HttpRecord,
    started: Instant,
    /// A piece of the request that the process has not taken yet.
    sending: bool,
    /// The request is complete.
    sent: bool,
    has_head: bool,
    /// The process may report one more piece.
    credit: bool,
    share: Share,
}

impl Exchange {
    fn end(mut self, error: Option<&str>) -> (HttpRecord, Share) {
        self.record.ms = self.started.elapsed().as_millis().try_into().unwrap_or(u64::MAX);
        self.record.error = error.map(str::to_owned);
        self.process.remove(self.number);
        (self.record, self.share)
    }
}

impl HttpClient {
    /// Carries out a call. Dropping the future gives up the reply, not an exchange.
    pub(crate) fn call(
        &self,
        egress: &Egress,
        holder: Holder,
        permit: HttpPermit,
    ) -> impl Future<Output = Result<HttpReply, HostError>> + Send + use<> {
        let (exchanges, egress) = (Arc::clone(&self.exchanges), egress.clone());
        async move {
            match permit {
                HttpPermit::Open { exchange, allowed } => {
                    open(&exchanges, &egress, &holder, exchange, *allowed).await
                }
                HttpPermit::Send { exchange, data, end } => exchanges.send(exchange, data, end),
                HttpPermit::Wait { open, pull, timeout_ms } => {
                    Ok(HttpReply::Progress(exchanges.wait(&open, &pull, timeout_ms).await))
                }
                HttpPermit::Close { exchange } => {
                    exchanges.close(exchange);
                    Ok(HttpReply::Done)
                }
            }
        }
    }

    /// Waits until this exchange has made progress, and grants it credit for a piece of its body.
    pub(crate) async fn progress(&self, exchange: u64) -> Vec<ExchangeProgress> {
        self.exchanges.wait(&[exchange], &[exchange], HTTP_WAIT_MS).await
    }

    /// The records of exchanges that have ended since the last call.
    pub(crate) fn records(&self) -> Vec<HttpRecord> {
        std::mem::take(&mut self.exchanges.lock().records)
    }

    /// Gives up all exchanges, and returns the remaining records.
    pub(crate) fn end(&self) -> Vec<HttpRecord> {
        let under_way: Vec<u64> = self.exchanges.lock().under_way.keys().copied().collect();
        for exchange in under_way {
            self.exchanges.close(exchange);
        }
        let mut state = self.exchanges.lock();
        state.progress.clear();
        state.ended.clear();
        std::mem::take(&mut state.records)
    }
}

async fn open(
    exchanges: &Arc<Exchanges>,
    egress: &Egress,
    holder: &Holder,
    exchange: u64,
    allowed: AllowedRequest,
) -> Result<HttpReply, HostError> {
    let AllowedRequest { mut request, origin, path, concurrency, .. } = allowed;
    let limit = |message: String| HostError { code: "ERR_NET_LIMIT".to_owned(), message };
    {
        let state = exchanges.lock();
        if state.is_known(exchange) {
            return Err(unknown("the number of the exchange is in use"));
        }
        if state.under_way.len() + state.ended.len() >= concurrency as usize {
            return Err(limit(format!(
                "more than {} at a time (concurrency)",
                counted(concurrency, "request")
            )));
        }
    }
    let share = egress.0.exchanges.take(holder);
    let share = share.map_err(|refusal| limit(format!("{refusal}; {}", refusal.hint())))?;
    let process = egress.process().await?;
    // Before it is known as an exchange: a process that reads slowly is not sent more than this.
    let turn = process.turn().await;
    request.terms.owner = egress.number_of(holder);
    request.terms.own_ports.clone_from(&egress.0.config.own_ports);
    let record = HttpRecord {
        method: request.method.clone(),
        origin,
        path,
        status: None,
        error: None,
        sent: request.data.len() as u64,
        received: 0,
        ms: 0,
    };
    let mut state = exchanges.lock();
    let number = process.add(exchanges, exchange).ok_or_else(|| unavailable("the egress process ended"))?;
    let begun = Exchange {
        process: Arc::clone(&process),
        number,
        record,
        started: Instant::now(),
        sending: !request.end && !request.data.is_empty(),
        sent: request.end,
        has_head: false,
        credit: true,
        share,
    };
    state.under_way.insert(exchange, begun);
    process.open(number, request, turn);
    Ok(HttpReply::Done)
}

fn unknown(why: &str) -> HostError {
    HostError { code: "ERR_INVALID_STATE".to_owned(), message: why.to_owned() }
}

impl State {
    /// Whether an exchange is under way, or the worker has not received its end.
    fn is_known(&self, exchange: u64) -> bool {
        self.under_way.contains_key(&exchange) || self.ended.contains_key(&exchange)
    }
}

impl Exchanges {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No code panics while holding it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, exchange: u64, data: Vec<u8>, end: bool) -> Result<HttpReply, HostError> {
        let mut state = self.lock();
        // One that has ended meanwhile: its end waits for the worker.
        let Some(found) = state.under_way.get_mut(&exchange) else { return Ok(HttpReply::Done) };
        if found.sending || found.sent {
            return Err(unknown("no piece of this request may be sent now"));
        }
        found.sending = !end;
        found.sent = end;
        found.record.sent += data.len() as u64;
        found.process.send(ToEgress::Send { exchange: found.number, data, end });
        Ok(HttpReply::Done)
    }

    fn close(&self, exchange: u64) {
        let mut state = self.lock();
        if let Some(found) = state.under_way.remove(&exchange) {
            found.process.send(ToEgress::Close { exchange: found.number });
            let (record, _) = found.end(Some("ABORT_ERR"));
            state.records.push(record);
        }
        state.ended.remove(&exchange);
        state.progress.retain(|one| one.exchange != exchange);
    }

    async fn wait(&self, open: &[u64], pull: &[u64], timeout_ms: u32) -> Vec<ExchangeProgress> {
        let deadline = Instant::now() + Duration::from_millis(timeout_ms.into());
        let mut is_late = timeout_ms == 0;
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // From here on, a change is not missed.
            changed.as_mut().enable();
            let ready = self.take(open, pull);
            if !ready.is_empty() || is_late {
                return ready;
            }
            is_late = timeout_at(deadline, changed).await.is_err();
        }
    }

    /// Grants credit where the worker does, and takes what is ready for it.
    fn take(&self, open: &[u64], pull: &[u64]) -> Vec<ExchangeProgress> {
        let mut state = self.lock();
        let state = &mut *state;
        let waiting = |one: &&ExchangeProgress| matches!(one.progress, HttpProgress::Data(_));
        let full: HashSet<u64> = state.progress.iter().filter(waiting).map(|one| one.exchange).collect();
        for exchange in pull.iter().filter(|exchange| !full.contains(exchange)) {
            if let Some(found) = state.under_way.get_mut(exchange)
                && !std::mem::replace(&mut found.credit, true)
            {
                found.process.send(ToEgress::Pull { exchange: found.number });
            }
        }
        // The worker waits for what an earlier supervisor has begun.
        let lost = open.iter().filter(|one| !state.is_known(**one));
        let lost = lost.map(|exchange| ExchangeProgress {
            exchange: *exchange,
            progress: HttpProgress::Failed(HostError {
                code: "ERR_NET_EGRESS_LOST".to_owned(),
                message: "the daemon was restarted during the request, which may have been carried out"
                    .to_owned(),
            }),
        });
        let mut taken: Vec<ExchangeProgress> = lost.collect();
        let mut pieces = 0;
        while pieces < PIECES_PER_REPLY
            && let Some(next) = state.progress.pop_front()
        {
            pieces += usize::from(matches!(next.progress, HttpProgress::Data(_)));
            if matches!(next.progress, HttpProgress::End | HttpProgress::Failed(_)) {
                state.ended.remove(&next.exchange);
            }
            taken.push(next);
        }
        taken
    }

    /// Records what the egress process reports; [`Self::wake`] follows. An error is a violation of the protocol.
    pub(super) fn on_progress(&self, exchange: u64, progress: HttpProgress) -> Result<(), &'static str> {
        let mut state = self.lock();
        let Some(found) = state.under_way.get_mut(&exchange) else { return Ok(()) };
        let mut progress = progress;
        match &mut progress {
            HttpProgress::Sent if !std::mem::take(&mut found.sending) => {
                return Err("a piece that was not sent is reported as sent");
            }
            HttpProgress::Head { status, reason, headers, .. } => {
                reason.truncate(reason.floor_char_boundary(MESSAGE_BYTES));
                if std::mem::replace(&mut found.has_head, true) || !is_head(*status, headers) {
                    return Err("a second or impossible head");
                }
                found.record.status = Some(*status);
            }
            HttpProgress::Data(data) => {
                let has_credit = std::mem::take(&mut found.credit);
                if !found.has_head || !has_credit || data.len() > HTTP_PIECE_BYTES {
                    return Err("a piece without credit");
                }
                found.record.received += data.len() as u64;
            }
            HttpProgress::End if !found.has_head => return Err("an end without a head"),
            HttpProgress::Sent | HttpProgress::End => {}
            HttpProgress::Failed(error) => {
                error.code.truncate(error.code.floor_char_boundary(64));
                error.message.truncate(error.message.floor_char_boundary(MESSAGE_BYTES));
            }
        }
        let error = match &progress {
            HttpProgress::Failed(error) => Some(Some(error.code.as_str())),
            HttpProgress::End => Some(None),
            _ => None,
        };
        if let Some(error) = error
            && let Some(found) = state.under_way.remove(&exchange)
        {
            let (record, share) = found.end(error);
            state.records.push(record);
            state.ended.insert(exchange, share);
        }
        state.progress.push_back(ExchangeProgress { exchange, progress });
        Ok(())
    }

    /// Wakes whoever waits for progress.
    pub(super) fn wake(&self) {
        self.changed.notify_waiters();
    }
}

fn is_head(status: u16, headers: &[HttpHeader]) -> bool {
    let bytes: usize = headers.iter().map(|header| header.name.len() + header.value.len()).sum();
    (100..1_000).contains(&status) && headers.len() <= HTTP_HEADERS && bytes <= HTTP_HEADER_BYTES
}
