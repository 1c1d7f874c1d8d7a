//! Events for an execution: to an item that waits for one of its name, or into the mailbox. Until it is stored, its sender gets no reply.

use super::input::{DurableAction as Action, DurableRefusal, EventWrites, RunToken};
use super::machine::DurableMachine;
use crate::Now;
use vm_system_protocol::json::JsonText;
use vm_system_protocol::time::Timestamp;
use vm_system_record::{ItemOutcome, MailRow, Write};

impl DurableMachine {
    /// An event for this execution.
    pub(super) fn emit(
        &mut self,
        token: RunToken,
        (name, event): (String, JsonText),
        with: EventWrites,
        now: Now,
        actions: &mut Vec<Action>,
    ) {
        // An item whose time has come has its result already.
        self.expire_if_due(now, actions);
        if self.ended {
            actions.push(Action::Reply { token, result: Err(DurableRefusal::Ended) });
            return;
        }
        let waiter = self.items.waiter(&name);
        let event = event.as_str().to_owned();
        if waiter.is_some() && !self.items.has_space_for(event.len()) {
            actions.push(Action::Reply { token, result: Err(DurableRefusal::AnswersFull) });
            return;
        }
        let with = if let Some(number) = waiter {
            self.accept_item(number, ItemOutcome::Answered, Some(event), now);
            with.awaited
        } else {
            let Some(with) = with.kept else {
                actions.push(Action::Reply { token, result: Err(DurableRefusal::NotAwaited) });
                return;
            };
            let seq = self.items.last_mail + 1;
            let mail = MailRow { seq, name, event, at: Timestamp(now.unix_ms) };
            if !self.items.add_mail(mail.clone()) {
                actions.push(Action::Reply { token, result: Err(DurableRefusal::MailboxFull) });
                return;
            }
            self.writes.unwritten.push(Write::MailInsert { execution: self.spec.execution, mail });
            with
        };
        // In the batch of the event: a repeated request finds the mark of its key exactly if the event is stored.
        self.writes.unwritten.extend(with);
        self.requests.emitters.push((token, waiter.is_some()));
        if waiter.is_some() {
            self.item_ended(now, actions);
        }
        self.commit_alone(now, actions);
    }
}
