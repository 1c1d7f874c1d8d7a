//! The control socket, one frame at a time: what the CLI does, without the CLI, so that tests can also send invalid frames.

use crate::PATIENCE;
use crate::watch::Watch;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use vm_system_protocol::codec::{decode, encode};
use vm_system_protocol::control::{
    CONTROL_PROTOCOL, ClientFrame, ClientHello, ErrorCode, ExecEvents, ExecGet, ExecStart, ExecutionState,
    Op, OpError, Reply, ServerFrame, ServerHello, SessionClose, SessionCreate, SessionFork, SessionGet,
    SessionInspect, TemplateCreate, Verb,
};
use vm_system_protocol::limits::CONTROL_FRAME_BYTES;
use vm_system_protocol::model::{
    Engine, Event, EventPayload, Execution, ExecutionKind, Session, SessionInspection, SessionStatus,
    Settings,
};
use vm_system_sandbox::socket::PollSet;

/// A connection after the handshake.
#[derive(Debug)]
pub struct Client {
    /// The stream, for tests that break off.
    pub stream: UnixStream,
    /// Executions for which its requests wait are cancelled if it goes and nobody else waits.
    pub cancel_on_disconnect: bool,
    next: u32,
}

impl Client {
    /// Connects and exchanges hello messages.
    pub fn connect(socket: &Path) -> Self {
        Self::try_connect(socket).unwrap_or_else(|refusal| panic!("refused: {refusal}"))
    }

    /// As [`Client::connect`]; the reason of a refusal.
    pub fn try_connect(socket: &Path) -> Result<Self, String> {
        Self::over_stream(UnixStream::connect(socket).expect("connect"))
    }

    /// Exchanges hello messages over a stream.
    pub fn over_stream(stream: UnixStream) -> Result<Self, String> {
        stream.set_read_timeout(Some(PATIENCE)).expect("deadline");
        let mut client = Self { stream, cancel_on_disconnect: false, next: 1 };
        let hello = ClientHello { protocol: CONTROL_PROTOCOL, version: "test".to_owned() };
        client.write(&encode(&hello, CONTROL_FRAME_BYTES).expect("hello"));
        let hello: ServerHello = decode(&client.read()).expect("server hello");
        hello.refusal.map_or(Ok(client), Err)
    }

    /// Writes one frame.
    pub fn write(&mut self, bytes: &[u8]) {
        self.try_write(bytes).expect("frame");
    }

    fn try_write(&mut self, bytes: &[u8]) -> io::Result<()> {
        // In one write, as real clients do.
        let frame = [&(bytes.len() as u32).to_le_bytes(), bytes].concat();
        self.stream.write_all(&frame)
    }

    /// Reads one frame.
    pub fn read(&mut self) -> Vec<u8> {
        self.try_read().expect("frame")
    }

    fn try_read(&mut self) -> io::Result<Vec<u8>> {
        // Polled first: a blocking read would also be woken when the supervisor reads the request.
        let mut ready = PollSet::with_capacity(1);
        ready.add(&self.stream);
        ready.wait(Some(PATIENCE)).expect("wait");
        let mut len = [0; 4];
        self.stream.read_exact(&mut len)?;
        let mut bytes = vec![0; u32::from_le_bytes(len) as usize];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Sends a request and does not wait; its number.
    pub fn send(&mut self, op: impl Into<Op>) -> u32 {
        self.send_with_key(op, None)
    }

    /// As [`Client::send`], with an idempotency key.
    pub fn send_with_key(&mut self, op: impl Into<Op>, key: Option<&str>) -> u32 {
        let (id, frame) = self.request(op.into(), key);
        self.write(&frame);
        id
    }

    fn request(&mut self, op: Op, key: Option<&str>) -> (u32, Vec<u8>) {
        let id = self.next;
        self.next += 1;
        let frame = ClientFrame::Request {
            id,
            idempotency_key: key.map(str::to_owned),
            cancel_on_disconnect: self.cancel_on_disconnect,
            op,
        };
        (id, encode(&frame, CONTROL_FRAME_BYTES).expect("request"))
    }

    /// The next frame.
    pub fn frame(&mut self) -> ServerFrame {
        decode(&self.read()).expect("server frame")
    }

    /// Waits for the response to a request; the events before it are collected.
    pub fn response(&mut self, id: u32) -> (Vec<Event>, Result<Reply, OpError>) {
        let mut gathered = Vec::new();
        loop {
            match self.frame() {
                ServerFrame::Events { id: of, events } if of == id => gathered.extend(events),
                ServerFrame::Reply { id: of, result } if of == id => {
                    return (gathered, result.map_err(|error| *error));
                }
                other => panic!("a response to another request: {other:?}"),
            }
        }
    }

    /// As [`Client::response`], to a request of this verb and without the events.
    pub fn reply<V: Verb>(&mut self, id: u32) -> Result<V::Reply, OpError> {
        let reply = self.response(id).1?;
        Ok(V::reply_from(reply).expect("the reply of the verb"))
    }

    /// One request and its response.
    pub fn op<V: Verb>(&mut self, verb: V) -> Result<V::Reply, OpError> {
        let id = self.send(verb);
        self.reply::<V>(id)
    }

    /// As [`Client::op`] for a request without events; an error if the daemon was killed meanwhile.
    pub fn try_op<V: Verb>(&mut self, verb: V) -> io::Result<Result<V::Reply, OpError>> {
        let (id, frame) = self.request(verb.into(), None);
        self.try_write(&frame)?;
        match decode(&self.try_read()?).expect("server frame") {
            ServerFrame::Reply { id: of, result } if of == id => {
                let reply = result.map_err(|error| *error);
                Ok(reply.map(|reply| V::reply_from(reply).expect("the reply of the verb")))
            }
            other => panic!("a response to another request: {other:?}"),
        }
    }

    /// A template with these settings and modules; its id.
    pub fn template(&mut self, settings: Settings, modules: &[&str]) -> String {
        self.template_of(Engine::Quickjs, settings, modules)
    }

    /// A template for programs with these settings; its id.
    pub fn program_template(&mut self, settings: Settings) -> String {
        self.template_of(Engine::Cvm, settings, &[])
    }

    fn template_of(&mut self, engine: Engine, settings: Settings, modules: &[&str]) -> String {
        // Names are unique among an owner's templates, over all connections of a test.
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let op = TemplateCreate {
            name: format!("template-{}", NUMBER.fetch_add(1, Ordering::Relaxed)),
            engine,
            settings,
            modules: modules.iter().map(|name| (*name).to_owned()).collect(),
        };
        self.op(op).expect("template").id.to_string()
    }

    /// A session of a template.
    pub fn session(&mut self, template: &str, worktree: &Path) -> Result<Session, OpError> {
        self.session_as(template, worktree, None)
    }

    /// A session of a template that uses its files with the rights of a user.
    pub fn session_as(
        &mut self,
        template: &str,
        worktree: &Path,
        user: Option<&str>,
    ) -> Result<Session, OpError> {
        self.new_session(template, worktree, (user, None))
    }

    /// A session with a name.
    pub fn session_named(&mut self, template: &str, worktree: &Path, name: &str) -> Session {
        self.new_session(template, worktree, (None, Some(name))).expect("a session")
    }

    fn new_session(
        &mut self,
        template: &str,
        worktree: &Path,
        (user, name): (Option<&str>, Option<&str>),
    ) -> Result<Session, OpError> {
        let op = SessionCreate {
            template: template.to_owned(),
            workspace_id: "tests".to_owned(),
            base_commit_oid: "none".to_owned(),
            worktree_path: worktree.to_string_lossy().into_owned(),
            as_user: user.map(str::to_owned),
            name: name.map(str::to_owned),
            ttl_s: None,
            idle_timeout_s: None,
        };
        self.op(op)
    }

    /// Forks of a session.
    pub fn fork(&mut self, session: &Session, count: u32) -> Result<Vec<Session>, OpError> {
        self.op(SessionFork { session: session.id.to_string(), count })
    }

    /// Runs code that must succeed; the preview of its value.
    #[track_caller]
    pub fn preview_of(&mut self, session: &Session, code: &str) -> String {
        let execution = self.eval(session, code).unwrap_or_else(|error| panic!("{code}: {error:?}"));
        assert_eq!(execution.error, None, "{code}");
        value(&execution.events.unwrap_or_default()).unwrap_or_default().to_owned()
    }

    /// Ends a session; no error if it has ended already.
    pub fn close(&mut self, session: &Session) {
        self.op(SessionClose { session: session.id.to_string() }).expect("close");
    }

    /// A session's record.
    pub fn session_record(&mut self, session: &Session) -> Session {
        self.op(SessionGet { session: session.id.to_string() }).expect("session")
    }

    /// The kernel's data about a live session.
    pub fn inspect(&mut self, session: &Session) -> Result<SessionInspection, OpError> {
        self.op(SessionInspect { session: session.id.to_string() })
    }

    /// Polls until the session is in this state: there is no notification of its end. Fails at the deadline.
    #[track_caller]
    pub fn wait_for(&mut self, session: &Session, status: SessionStatus) -> Session {
        let mut watch = Watch::begin();
        loop {
            let record = self.session_record(session);
            if record.status == status {
                return record;
            }
            watch.pause(|| format!("still {} and not {status}", record.status));
        }
    }

    /// Follows the execution until it has ended. Fails at the deadline.
    #[track_caller]
    pub fn until_final(&mut self, execution: &Execution) -> Execution {
        let id = execution.id.to_string();
        let follow = ExecEvents { execution: id.clone(), after_seq: 0, limit: 0, follow: true };
        self.op(follow).expect("followed to its end");
        let record = self.execution_record(&id);
        assert!(record.status.is_final(), "still {}", record.status);
        record
    }

    /// An execution's record.
    pub fn execution_record(&mut self, execution: &str) -> Execution {
        self.op(ExecGet { execution: execution.to_owned() }).expect("execution")
    }

    /// Stored events of an execution.
    pub fn events(&mut self, execution: &str) -> Vec<Event> {
        let op = ExecEvents { execution: execution.to_owned(), after_seq: 0, limit: 0, follow: false };
        self.op(op).expect("events")
    }

    /// Runs code to its end. An execution over its output limit is reported as an error with its id; its record is returned
    /// here, too.
    pub fn eval(&mut self, session: &Session, code: &str) -> Result<Execution, OpError> {
        match self.op(repl(session, code, true)) {
            Ok(state) => Ok(record(state)),
            Err(error) if error.code == ErrorCode::OutputLimitExceeded => {
                let details = error.details.and_then(|details| details.to_value()).expect("details");
                let id = details["execution_id"].as_str().expect("the execution's id");
                Ok(self.execution_record(id))
            }
            Err(error) => Err(error),
        }
    }

    /// Starts code; its record as soon as it runs.
    pub fn start(&mut self, session: &Session, code: &str) -> Execution {
        record(self.op(repl(session, code, false)).expect("start"))
    }

    /// Runs a file of the worktree to its end.
    pub fn run_file(&mut self, session: &Session, path: &str) -> Result<Execution, OpError> {
        let mut new = execution(session, ExecutionKind::RunFile);
        new.path = Some(path.to_owned());
        self.op(new).map(record)
    }
}

/// The record of an execution that does not wait for an answer.
pub fn record(state: ExecutionState) -> Execution {
    match state {
        ExecutionState::Execution(execution) => execution,
        ExecutionState::Run(run) => panic!("it waits: {run:?}"),
    }
}

/// The request that runs code.
pub fn repl(session: &Session, code: &str, wait: bool) -> ExecStart {
    let mut new = execution(session, ExecutionKind::Repl);
    new.input = Some(code.to_owned());
    new.wait = wait;
    new
}

fn execution(session: &Session, kind: ExecutionKind) -> ExecStart {
    ExecStart::new(session.id.to_string(), kind)
}

/// The preview of the last value event.
pub fn value(events: &[Event]) -> Option<&str> {
    events.iter().rev().find_map(|event| match &event.payload {
        EventPayload::Value(value) => Some(value.preview.as_str()),
        _ => None,
    })
}
