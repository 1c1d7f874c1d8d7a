//! The keeper's loop: orders of the supervisor, exited children, connections of a new supervisor, and the grace after which the
//! jail ends. Must not block, except on sending to its supervisor.

use super::inside::Begin;
use super::send_message;
use super::table::{KeptProcesses, KeptWorker};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};
use vm_system_protocol::codec::decode;
use vm_system_protocol::hello::Hello;
use vm_system_protocol::ids::SessionId;
use vm_system_protocol::keeper::{FromKeeper, LayerReport, ProcessUsage, ToKeeper};
use vm_system_protocol::limits::{HELLO_MS, KEEPER_MESSAGE_BYTES, RECORDS_PER_PACKET};
use vm_system_sandbox::pidfd::PidFd;
use vm_system_sandbox::{process, socket};

/// The number of the zygote that the keeper started itself.
pub(super) const FIRST_ZYGOTE: u32 = 0;

/// The inputs of the loop.
pub(super) struct Setup {
    pub(super) control: OwnedFd,
    pub(super) adoption: OwnedFd,
    pub(super) begin: Begin,
    pub(super) exits: process::ChildExits,
    pub(super) zygote: (u32, PidFd),
    pub(super) layers: Vec<LayerReport>,
    /// To later supervisors.
    pub(super) hello: Hello,
}

struct Keeper {
    hello: Hello,
    begin: Begin,
    adoption: OwnedFd,
    exits: process::ChildExits,
    table: KeptProcesses,
    /// The supervisor's channel, or the time at which it was closed.
    supervisor: Result<OwnedFd, Instant>,
    /// The service was stopped: no other supervisor comes.
    stopped: bool,
    /// A connection that has not authenticated itself yet, and its deadline.
    candidate: Option<(OwnedFd, Instant)>,
    buffer: Vec<u8>,
}

/// Serves until the jail ends.
pub(super) fn run(setup: Setup) -> ! {
    let Setup { control, adoption, begin, exits, zygote: (inner_pid, pidfd), layers, hello } = setup;
    let mut table = KeptProcesses::default();
    table.keep_zygote(FIRST_ZYGOTE, inner_pid, pidfd);
    let buffer = vec![0; KEEPER_MESSAGE_BYTES];
    let mut keeper = Keeper {
        hello,
        begin,
        adoption,
        exits,
        table,
        supervisor: Ok(control),
        stopped: false,
        candidate: None,
        buffer,
    };
    keeper.report(&FromKeeper::Ready { layers });
    // A zygote may have exited before this loop could receive its SIGCHLD.
    keeper.reap();
    let mut ready = socket::PollSet::with_capacity(5);
    while keeper.turn(&mut ready).is_ok() {}
    keeper.table.kill_all();
    process::exit_now(0)
}

/// Ends the loop.
struct End;

impl Keeper {
    fn turn(&mut self, ready: &mut socket::PollSet) -> Result<(), End> {
        ready.clear();
        let exits = ready.add(&self.exits);
        let supervisor = self.supervisor.as_ref().ok().map(|socket| ready.add(socket));
        let adoption = (self.begin.grace_ms > 0).then(|| ready.add(&self.adoption));
        let candidate = self.candidate.as_ref().map(|(socket, _)| ready.add(socket));
        let lifeline = self.begin.lifeline.as_ref().map(|pipe| ready.add(pipe));
        ready.wait(self.longest_wait()?).map_err(|_| End)?;
        let is_ready = |index: Option<usize>| index.is_some_and(|index| ready.is_ready(index));
        if lifeline.is_some_and(|lifeline| ready.is_closed(lifeline)) {
            self.begin.lifeline = None;
            self.stopped = true;
        }
        // Exits come before orders: an order may name a pid that an exited child had.
        if ready.is_ready(exits) {
            self.reap();
        }
        if is_ready(supervisor) {
            self.receive_order()?;
        }
        // The candidate comes before the next one: there is one at a time, and it may have become the supervisor.
        if is_ready(candidate) {
            self.receive_from_candidate();
        }
        if is_ready(adoption) {
            self.accept_candidate();
        }
        if self.candidate.as_ref().is_some_and(|(_, until)| *until <= Instant::now()) {
            self.candidate = None;
        }
        Ok(())
    }

    /// The longest wait for the next event; [`End`] if no supervisor can come any more, or has nothing to come for.
    fn longest_wait(&self) -> Result<Option<Duration>, End> {
        let candidate =
            self.candidate.as_ref().map(|(_, until)| until.saturating_duration_since(Instant::now()));
        let Err(since) = &self.supervisor else { return Ok(candidate) };
        if self.table.workers().len() == 0 {
            return Err(End);
        }
        let grace = if self.stopped { Duration::ZERO } else { Duration::from_millis(self.begin.grace_ms) };
        let left = grace.checked_sub(since.elapsed()).ok_or(End)?;
        Ok(Some(candidate.map_or(left, |candidate| candidate.min(left))))
    }

    fn report(&self, message: &FromKeeper) {
        if let Ok(supervisor) = &self.supervisor {
            // A closed channel is noticed when it is read: its last order may be to end.
            let _ = send_message(supervisor, message, &[]);
        }
    }

    fn reap(&mut self) {
        self.exits.drain();
        while let Some(process::ReapedChild { pid, wait_status, cpu_ms, peak_memory_kib }) = process::reap() {
            let role = self.table.record_exit(pid, wait_status);
            let usage = Some(ProcessUsage { cpu_ms, peak_memory_kib });
            self.report(&FromKeeper::Exited { inner_pid: pid, role, wait_status, usage });
        }
    }

    fn receive_order(&mut self) -> Result<(), End> {
        let Ok(supervisor) = &self.supervisor else { return Ok(()) };
        let got = match socket::receive(supervisor, &mut self.buffer, socket::Wait::No) {
            Ok(got) if got.len > 0 => got,
            // The second one once, if the supervisor has closed its end without reading all reports; its orders follow.
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::ConnectionReset
                ) =>
            {
                return Ok(());
            }
            // The supervisor is gone. Without a grace the jail ends now.
            _ => {
                self.supervisor = Err(Instant::now());
                return if self.begin.grace_ms == 0 { Err(End) } else { Ok(()) };
            }
        };
        let Ok(message) = decode::<ToKeeper>(&self.buffer[..got.len]) else {
            // A supervisor with another protocol version is refused.
            self.supervisor = Err(Instant::now());
            return Ok(());
        };
        self.execute(&message, got.fds)
    }

    fn execute(&mut self, message: &ToKeeper, fds: Vec<OwnedFd>) -> Result<(), End> {
        let mut fds = fds.into_iter();
        match *message {
            ToKeeper::Keep { session, inner_pid } => {
                if let (Some(channel), Some(pidfd)) = (fds.next(), fds.next()) {
                    let pidfd = PidFd::from(pidfd);
                    let is_alive = !has_ended(&pidfd);
                    if !is_alive {
                        // Reaped first, so that the last exit recorded with this pid is this worker's.
                        self.reap();
                    }
                    self.table.keep(
                        session,
                        KeptWorker { inner_pid, channel, pidfd, wait_status: None },
                        is_alive,
                    );
                    self.report(&FromKeeper::Kept { session });
                    self.report_early_exit(session);
                }
            }
            ToKeeper::KeepZygote { zygote, inner_pid } => {
                if let Some(pidfd) = fds.next().map(PidFd::from)
                    && !has_ended(&pidfd)
                {
                    self.table.keep_zygote(zygote, inner_pid, pidfd);
                }
                if let Some(listener) = fds.next() {
                    self.table.keep_listener(listener);
                }
            }
            ToKeeper::Forget { session } => self.table.forget(session),
            ToKeeper::List => {
                // Workers that run no code have exited: their channels were closed with the supervisor.
                self.table.kill_zygotes();
                self.report_all();
            }
            ToKeeper::Shutdown => return Err(End),
            ToKeeper::Token { .. } | ToKeeper::Begin { .. } => {}
        }
        Ok(())
    }

    /// The worker exited before it was kept: its exit is reported again, now with its session.
    fn report_early_exit(&mut self, session: SessionId) {
        let ended =
            self.table.worker(session).and_then(|worker| Some((worker.inner_pid, worker.wait_status?)));
        if let Some((inner_pid, wait_status)) = ended {
            let role = vm_system_protocol::keeper::ExitedRole::Worker(session);
            self.report(&FromKeeper::Exited { inner_pid, role, wait_status, usage: None });
        }
    }

    fn report_all(&self) {
        if let Ok(supervisor) = &self.supervisor {
            let _ = self.try_report_all(supervisor);
        }
    }

    fn try_report_all(&self, supervisor: &OwnedFd) -> std::io::Result<()> {
        let listener: Vec<BorrowedFd<'_>> = self.table.listener().into_iter().map(OwnedFd::as_fd).collect();
        send_message(supervisor, &FromKeeper::Listener, &listener)?;
        let mut workers = self.table.workers();
        loop {
            let (mut records, mut fds) = (Vec::new(), Vec::new());
            for (record, worker) in workers.by_ref().take(RECORDS_PER_PACKET) {
                if record.wait_status.is_none() {
                    fds.extend([worker.channel.as_fd(), worker.pidfd.as_fd()]);
                }
                records.push(record);
            }
            let last = workers.len() == 0;
            send_message(supervisor, &FromKeeper::Records { records, last }, &fds)?;
            if last {
                return Ok(());
            }
        }
    }

    fn accept_candidate(&mut self) {
        let Ok(candidate) = socket::accept(&self.adoption) else { return };
        // One supervisor, one candidate: any other connection is closed.
        if self.supervisor.is_err() && self.candidate.is_none() {
            let _ = socket::send(&candidate, &[&self.hello.to_packet()], &[], socket::Wait::No);
            self.candidate = Some((candidate, Instant::now() + Duration::from_millis(HELLO_MS)));
        }
    }

    fn receive_from_candidate(&mut self) {
        let Some((candidate, _)) = self.candidate.take() else { return };
        let Ok(got) = socket::receive(&candidate, &mut self.buffer, socket::Wait::No) else { return };
        let accepted = match decode::<ToKeeper>(&self.buffer[..got.len]) {
            Ok(ToKeeper::Token { token }) => is_equal(&token, &self.begin.token),
            _ => false,
        };
        if send_message(&candidate, &FromKeeper::Peer { accepted }, &[]).is_ok()
            && accepted
            && self.supervisor.is_err()
        {
            self.supervisor = Ok(candidate);
        }
    }
}

/// Whether a process has exited, reaped or not.
fn has_ended(process: &PidFd) -> bool {
    let mut ready = socket::PollSet::with_capacity(1);
    ready.add(process);
    ready.wait(Some(Duration::ZERO)).unwrap_or(false)
}

/// Compares in constant time, which does not reveal the position of the first difference.
fn is_equal(left: &[u8; 32], right: &[u8; 32]) -> bool {
    left.iter().zip(right).fold(0, |differences, (left, right)| differences | (left ^ right)) == 0
}
