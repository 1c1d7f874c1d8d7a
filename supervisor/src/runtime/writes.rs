//! What is to be stored, in order, and what became of it.

use crate::core::{Input, Write, WriteId};
use crate::store::{Batch, Owner, PolicySnapshot, StoreError, StoreHandle, Ticket, Urgency, Write as Stored};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

type Submitting = Pin<Box<dyn Future<Output = Result<Ticket, StoreError>> + Send>>;

/// Batches on their way. One is handed over at a time, so that the store keeps their order; while it has no room, the
/// owner stops reading its worker ([`Writes::is_behind`]).
pub(super) struct Writes {
    store: StoreHandle,
    /// What a session's row has besides its record; given away with the first batch.
    row: Option<(Owner, Arc<PolicySnapshot>)>,
    queue: VecDeque<(WriteId, Batch, Urgency)>,
    submitting: Option<(WriteId, Submitting)>,
    tickets: VecDeque<(WriteId, Ticket)>,
}

impl Writes {
    pub(super) fn new(store: StoreHandle, owner: Owner, policy: Arc<PolicySnapshot>) -> Self {
        Self {
            store,
            row: Some((owner, policy)),
            queue: VecDeque::new(),
            submitting: None,
            tickets: VecDeque::new(),
        }
    }

    /// Gives a batch away.
    pub(super) fn push(&mut self, id: WriteId, batch: Vec<Write>, urgent: bool) -> Option<Input> {
        let writes = batch.into_iter().filter_map(|write| self.translate(write)).collect::<Vec<_>>();
        let urgency = if urgent { Urgency::Now } else { Urgency::Lazy };
        self.queue.push_back((id, Batch(writes), urgency));
        match self.hand_over(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(input) => Some(input),
            Poll::Pending => None,
        }
    }

    /// Whether the store has not taken all of it.
    pub(super) fn is_behind(&self) -> bool {
        self.submitting.is_some() || !self.queue.is_empty()
    }

    /// The next answer of the store.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Input> {
        if let Poll::Ready(input) = self.hand_over(context) {
            return Poll::Ready(input);
        }
        let Some((id, ticket)) = self.tickets.front_mut() else { return Poll::Pending };
        let Poll::Ready(result) = Pin::new(ticket).poll(context) else { return Poll::Pending };
        let id = *id;
        self.tickets.pop_front();
        Poll::Ready(match result {
            Ok(_) => Input::Stored(id),
            Err(error) => failed(id, &error),
        })
    }

    fn hand_over(&mut self, context: &mut Context<'_>) -> Poll<Input> {
        loop {
            if let Some((id, submitting)) = &mut self.submitting {
                let Poll::Ready(result) = submitting.as_mut().poll(context) else { return Poll::Pending };
                let id = *id;
                self.submitting = None;
                match result {
                    Ok(ticket) => self.tickets.push_back((id, ticket)),
                    Err(error) => return Poll::Ready(failed(id, &error)),
                }
            }
            let Some((id, batch, urgency)) = self.queue.pop_front() else { return Poll::Pending };
            let store = self.store.clone();
            let submitting: Submitting = Box::pin(async move {
                match urgency {
                    Urgency::Now => store.submit(batch).await,
                    Urgency::Lazy => store.submit_lazy(batch).await,
                }
            });
            self.submitting = Some((id, submitting));
        }
    }

    fn translate(&mut self, write: Write) -> Option<Stored> {
        Some(match write {
            Write::SessionInserted(session) => {
                let (owner, policy) = self.row.take()?;
                Stored::SessionInsert { owner, session, policy }
            }
            Write::SessionReady { session } => Stored::SessionReady { id: session },
            Write::SessionEnded { session, status, at, reason, last_error } => {
                Stored::SessionEnd { id: session, status, at, reason, last_error }
            }
            Write::ExecutionStarted(execution) => Stored::ExecutionStarted { name: None, execution },
            Write::Events(events) => Stored::Events(events),
            Write::ExecutionEnded(execution) => Stored::ExecutionEnded(execution),
            Write::ExecutionDegraded(id) => Stored::ExecutionDegraded { id },
            Write::Asked(task) => Stored::TaskInsert(task),
            Write::AnswerUnfit { task, at } => Stored::TaskAttempt { id: task, at },
            Write::QuestionEnded { task, outcome, answer, at } => {
                Stored::TaskEnd { id: task, outcome, answer, at }
            }
            Write::QuestionsWithdrawn { execution, at } => Stored::TasksWithdraw { execution, at },
            Write::Progress { execution, status, metrics } => {
                Stored::RunProgress { id: execution, status, metrics }
            }
            Write::WorkerSeq { session, seq } => Stored::WorkerSeq { session, seq },
        })
    }
}

fn failed(write: WriteId, error: &StoreError) -> Input {
    let permanent = matches!(error, StoreError::Rejected(_) | StoreError::Closed);
    Input::StoreFailed { write, error: error.to_string(), permanent }
}
