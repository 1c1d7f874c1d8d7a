//! Compares sessions with the model: their state, their records, and the reasons of their ends.

use crate::driver::{Driver, Failure, Outcome};
use crate::history::{History, Until};
use crate::model::{Known, Step, StepReply};
use vm_system_protocol::control::{ErrorCode, ExecEvents, ExecGet, ExecList, ListPage, SessionEvents};
use vm_system_protocol::model::{
    Event, EventPayload, Execution, ExecutionStatus, OnCrash, Session, SessionStatus,
};
use vm_system_tests::client::{record, repl, value};
use vm_system_tests::watch::Watch;

/// Rows of one response.
const ROWS: u32 = 1_000;
/// Prints the tokens in the state of a session.
const TOKENS: &str = "JSON.stringify(globalThis.tokens ?? [])";

impl Known {
    /// Whether a refused request means that it has ended.
    pub(crate) fn never_continues(&self) -> bool {
        let was_rolled_back = !self.copies.rolled_back_unknown.is_empty();
        self.on_crash == OnCrash::Close && !was_rolled_back
    }
}

impl Driver<'_> {
    /// The records of a session.
    pub(crate) fn history(&mut self, known: &Known) -> History {
        let session = known.session.id.to_string();
        let mut events = Vec::new();
        loop {
            let after_seq = events.len() as u64;
            let op = SessionEvents { session: session.clone(), after_seq, limit: ROWS, wait: false };
            match self.patiently(&op) {
                Ok(page) if page.events.is_empty() => break,
                Ok(page) => events.extend(page.events),
                other => panic!("{other:?}"),
            }
        }
        let executions = match self.patiently(&ExecList::all(session, ListPage::first(ROWS))) {
            Ok(executions) => executions,
            other => panic!("{other:?}"),
        };
        History { events, executions }
    }

    /// Compares the state of a session that is in use; `false`: it could not be read.
    pub(crate) fn look(&mut self, chosen: usize) -> Outcome<bool> {
        let known = self.known[chosen].clone();
        match self.request(repl(&known.session, TOKENS, true)) {
            Ok(state) => {
                let execution = record(state);
                let is_readable = execution.status == ExecutionStatus::Ok && !execution.degraded;
                if is_readable {
                    self.compare_tokens(&known, &execution);
                }
                Ok(is_readable)
            }
            Err(failure) => Err(failure),
        }
    }

    fn compare_tokens(&mut self, known: &Known, execution: &Execution) {
        let text = execution.result.as_ref().and_then(|result| result.json.as_ref()?.to_value());
        let text = text.as_ref().and_then(|text| text.as_str()).expect("a text");
        let tokens: Vec<String> = serde_json::from_str(text).expect("texts");
        let history = self.history(known);
        history.state(known, Until::Ended(execution.id)).compare(&tokens, known, &history);
    }

    /// Compares a session with the model: its state if it is ready, the reason of its end otherwise, and its records.
    pub(crate) fn compare(&mut self, known: &Known) {
        let mut watch = Watch::begin();
        loop {
            let record = self.record(&known.session);
            match record.status {
                SessionStatus::Starting => assert!(!known.never_continues(), "nobody starts it: {record:?}"),
                SessionStatus::Closed | SessionStatus::Crashed => {
                    self.totals.ended += 1;
                    self.compare_end(known, &record);
                    break;
                }
                SessionStatus::Ready | SessionStatus::Waiting | SessionStatus::Suspended => {
                    if self.compare_state(known) {
                        self.totals.alive += 1;
                        break;
                    }
                }
            }
            watch.pause(|| format!("{record:?} of {known:#?}"));
        }
        self.compare_records(known);
    }

    fn compare_end(&self, known: &Known, record: &Session) {
        let reason = record.close_reason.as_deref().unwrap_or_default();
        let is_explained = self.strikes.explain(known.created_after, reason);
        if record.status == SessionStatus::Closed {
            // The worker may have been killed before it had carried out the order to exit.
            assert!(reason == "exited" || is_explained, "{record:?}");
            return;
        }
        assert!(is_explained || known.closes_with(reason), "{reason} of {record:?}, {known:#?}");
        assert!(record.closed_at.is_some() && record.last_error.is_some(), "{record:?}");
    }

    fn compare_records(&mut self, known: &Known) {
        let file = std::fs::read_to_string(self.site.worktree.join(self.file())).unwrap_or_default();
        known.compare_file(&file);
        let history = self.history(known);
        history.compare(known, self.strikes);
        self.totals.recoveries += u32::try_from(history.recoveries()).expect("few");
        for step in &known.steps {
            if let StepReply::Acknowledged(execution) = &step.reply {
                self.compare_execution(&execution.to_string(), step);
            }
        }
    }

    /// `false`: the session could not be used. It was not adopted yet, its worker had been killed at the end of the work, or the store has not
    /// noticed yet that the disk is not full any more.
    fn compare_state(&mut self, known: &Known) -> bool {
        // An execution that still runs is settled as during the work. The steps that this settles are of the copy, and count for
        // none of them.
        let totals = self.totals.clone();
        self.known.push(known.clone());
        let last = self.known.len() - 1;
        self.settle(last);
        let compared = self.look(last);
        self.known.pop();
        self.totals = totals;
        match compared {
            Ok(compared) => compared,
            Err(Failure::Refused(error)) => {
                let codes =
                    [ErrorCode::SessionBusy, ErrorCode::SessionNotReady, ErrorCode::StorageUnavailable];
                assert!(codes.contains(&error.code), "{error:?} of {known:#?}");
                false
            }
            Err(Failure::Connection) => false,
        }
    }

    fn compare_execution(&mut self, execution: &str, step: &Step) {
        let record = match self.patiently(&ExecGet { execution: execution.to_owned() }) {
            Ok(record) => record,
            other => panic!("{other:?}"),
        };
        assert_eq!((record.status, record.degraded), (ExecutionStatus::Ok, false), "{step:?}: {record:?}");
        let op = ExecEvents { execution: execution.to_owned(), after_seq: 0, limit: 0, follow: false };
        let events: Vec<Event> = match self.patiently(&op) {
            Ok(events) => events,
            other => panic!("{other:?}"),
        };
        let numbers = events.iter().map(|event| event.seq);
        assert!(numbers.eq(1..=events.len() as u64), "{step:?}: {events:?}");
        let lines: Vec<&str> = events.iter().filter_map(console).collect();
        let expected: Vec<String> = (0..step.lines).map(|line| format!("{} {line}", step.printed)).collect();
        assert_eq!(lines, expected);
        assert_eq!(value(&events), Some(&*format!("'{}'", step.token)));
    }
}

fn console(event: &Event) -> Option<&str> {
    match &event.payload {
        EventPayload::Console { text, .. } => Some(text),
        _ => None,
    }
}
