//! The keeper's loop: the supervisor's orders, ended children, a newcomer after the supervisor's death, and the grace
//! after which everything ends. Nothing here may block on anything but its own supervisor.

use super::inside::Begin;
use super::say;
use super::table::{Table, Worker, Zygote};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};
use vm_system_protocol::codec::decode;
use vm_system_protocol::hello::Hello;
use vm_system_protocol::ids::SessionId;
use vm_system_protocol::keeper::{FromKeeper, LayerReport, ToKeeper};
use vm_system_protocol::limits::{HELLO_MS, KEEPER_MESSAGE_BYTES, RECORDS_PER_PACKET};
use vm_system_sandbox::pidfd::PidFd;
use vm_system_sandbox::{process, socket};

/// The number of the zygote that the keeper started itself.
pub(super) const FIRST_ZYGOTE: u32 = 0;

/// What the loop begins with.
pub(super) struct Setup {
    pub(super) control: OwnedFd,
    pub(super) adoption: OwnedFd,
    pub(super) begin: Begin,
    pub(super) endings: process::Endings,
    pub(super) zygote: (u32, PidFd),
    pub(super) layers: Vec<LayerReport>,
}

struct Keeper {
    begin: Begin,
    adoption: OwnedFd,
    endings: process::Endings,
    table: Table,
    /// The supervisor, or since when there is none.
    supervisor: Result<OwnedFd, Instant>,
    /// Somebody who has connected and not yet proved anything, until when.
    newcomer: Option<(OwnedFd, Instant)>,
    buffer: Vec<u8>,
}

/// Serves until the end.
pub(super) fn run(setup: Setup) -> ! {
    let Setup { control, adoption, begin, endings, zygote: (inner_pid, pidfd), layers } = setup;
    let mut table = Table::default();
    table.keep_zygote(FIRST_ZYGOTE, Zygote { inner_pid, pidfd, rest: Vec::new() });
    let buffer = vec![0; KEEPER_MESSAGE_BYTES];
    let mut keeper =
        Keeper { begin, adoption, endings, table, supervisor: Ok(control), newcomer: None, buffer };
    keeper.tell(&FromKeeper::Ready { layers });
    // A zygote may have ended before its ending could be seen.
    keeper.reap();
    let mut ready = socket::Ready::with_capacity(4);
    while keeper.turn(&mut ready).is_ok() {}
    keeper.table.kill_all();
    process::exit_now(0)
}

/// The loop is over.
struct End;

impl Keeper {
    fn turn(&mut self, ready: &mut socket::Ready) -> Result<(), End> {
        ready.clear();
        let endings = ready.add(&self.endings);
        let supervisor = self.supervisor.as_ref().ok().map(|socket| ready.add(socket));
        let adoption = (self.begin.grace_ms > 0).then(|| ready.add(&self.adoption));
        let newcomer = self.newcomer.as_ref().map(|(socket, _)| ready.add(socket));
        ready.wait(self.patience()?).map_err(|_| End)?;
        let is_ready = |index: Option<usize>| index.is_some_and(|index| ready.is_ready(index));
        if ready.is_ready(endings) {
            self.reap();
        }
        if is_ready(supervisor) {
            self.hear_supervisor()?;
        }
        if is_ready(newcomer) {
            self.hear_newcomer();
        }
        if is_ready(adoption) {
            self.welcome();
        }
        if self.newcomer.as_ref().is_some_and(|(_, until)| *until <= Instant::now()) {
            self.newcomer = None;
        }
        Ok(())
    }

    /// How long nothing may happen; the end, if the grace is over.
    fn patience(&self) -> Result<Option<Duration>, End> {
        let newcomer =
            self.newcomer.as_ref().map(|(_, until)| until.saturating_duration_since(Instant::now()));
        let Err(since) = &self.supervisor else { return Ok(newcomer) };
        let left = Duration::from_millis(self.begin.grace_ms).checked_sub(since.elapsed()).ok_or(End)?;
        Ok(Some(newcomer.map_or(left, |newcomer| newcomer.min(left))))
    }

    fn tell(&mut self, message: &FromKeeper) {
        if let Ok(supervisor) = &self.supervisor
            && say(supervisor, message, &[]).is_err()
        {
            self.supervisor = Err(Instant::now());
        }
    }

    fn reap(&mut self) {
        self.endings.drain();
        while let Some((inner_pid, wait_status)) = process::reap() {
            let role = self.table.ended(inner_pid, wait_status);
            self.tell(&FromKeeper::Exited { inner_pid, role, wait_status });
        }
    }

    fn hear_supervisor(&mut self) -> Result<(), End> {
        let Ok(supervisor) = &self.supervisor else { return Ok(()) };
        let got = match socket::receive(supervisor, &mut self.buffer, socket::Wait::No) {
            Ok(got) if got.len > 0 => got,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(()),
            // Gone. With no grace this is the end of everything.
            _ => {
                self.supervisor = Err(Instant::now());
                return if self.begin.grace_ms == 0 { Err(End) } else { Ok(()) };
            }
        };
        let Ok(message) = decode::<ToKeeper>(&self.buffer[..got.len]) else {
            // A supervisor that speaks another language is none.
            self.supervisor = Err(Instant::now());
            return Ok(());
        };
        self.obey(&message, got.fds)
    }

    fn obey(&mut self, message: &ToKeeper, fds: Vec<OwnedFd>) -> Result<(), End> {
        let mut fds = fds.into_iter();
        match *message {
            ToKeeper::Keep { session, inner_pid } => {
                if let (Some(channel), Some(pidfd)) = (fds.next(), fds.next()) {
                    let pidfd = PidFd::from(pidfd);
                    let is_alive = !has_ended(&pidfd);
                    if !is_alive {
                        // Its ending is the last one that is noted under its number.
                        self.reap();
                    }
                    self.table.keep(
                        session,
                        Worker { inner_pid, channel, pidfd, wait_status: None },
                        is_alive,
                    );
                    self.tell(&FromKeeper::Kept { session });
                    self.tell_early_ending(session);
                }
            }
            ToKeeper::KeepZygote { zygote, inner_pid } => {
                if let (Some(channel), Some(pidfd)) = (fds.next(), fds.next()) {
                    let rest = std::iter::once(channel).chain(fds).collect();
                    self.table.keep_zygote(zygote, Zygote { inner_pid, pidfd: PidFd::from(pidfd), rest });
                    self.tell(&FromKeeper::KeptZygote { zygote });
                }
            }
            ToKeeper::Forget { session } => self.table.forget(session),
            ToKeeper::List => self.tell_everything(),
            ToKeeper::Shutdown => return Err(End),
            ToKeeper::Token { .. } | ToKeeper::Begin { .. } => {}
        }
        Ok(())
    }

    /// The worker ended before it was kept: its ending is told once more, now under its name.
    fn tell_early_ending(&mut self, session: SessionId) {
        let ended =
            self.table.worker(session).and_then(|worker| Some((worker.inner_pid, worker.wait_status?)));
        if let Some((inner_pid, wait_status)) = ended {
            let role = vm_system_protocol::keeper::ExitedRole::Worker(session);
            self.tell(&FromKeeper::Exited { inner_pid, role, wait_status });
        }
    }

    fn tell_everything(&mut self) {
        let Ok(supervisor) = &self.supervisor else { return };
        if self.try_tell_everything(supervisor).is_err() {
            self.supervisor = Err(Instant::now());
        }
    }

    fn try_tell_everything(&self, supervisor: &OwnedFd) -> std::io::Result<()> {
        for (number, zygote) in self.table.zygotes() {
            let Some((channel, listener)) = zygote.rest.split_first() else { continue };
            let fds: Vec<BorrowedFd<'_>> = [channel.as_fd(), zygote.pidfd.as_fd()]
                .into_iter()
                .chain(listener.iter().map(OwnedFd::as_fd))
                .collect();
            let message = FromKeeper::ZygoteRecord { zygote: number, inner_pid: zygote.inner_pid };
            say(supervisor, &message, &fds)?;
        }
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
            say(supervisor, &FromKeeper::Records { records, last }, &fds)?;
            if last {
                return Ok(());
            }
        }
    }

    fn welcome(&mut self) {
        let Ok(newcomer) = socket::accept(&self.adoption) else { return };
        // One supervisor, one candidate: anybody else is turned away by the closing of the connection.
        if self.supervisor.is_err() && self.newcomer.is_none() {
            let _ = socket::send(&newcomer, &[&Hello::ours().to_packet()], &[], socket::Wait::No);
            self.newcomer = Some((newcomer, Instant::now() + Duration::from_millis(HELLO_MS)));
        }
    }

    fn hear_newcomer(&mut self) {
        let Some((newcomer, _)) = self.newcomer.take() else { return };
        let Ok(got) = socket::receive(&newcomer, &mut self.buffer, socket::Wait::No) else { return };
        let accepted = match decode::<ToKeeper>(&self.buffer[..got.len]) {
            Ok(ToKeeper::Token { token }) => same(&token, &self.begin.token),
            _ => false,
        };
        if say(&newcomer, &FromKeeper::Peer { accepted }, &[]).is_ok() && accepted && self.supervisor.is_err()
        {
            self.supervisor = Ok(newcomer);
        }
    }
}

/// Whether a process is dead, reaped or not.
fn has_ended(process: &PidFd) -> bool {
    let mut ready = socket::Ready::with_capacity(1);
    ready.add(process);
    ready.wait(Some(Duration::ZERO)).unwrap_or(false)
}

/// Compares without telling by its duration where the first difference is.
fn same(left: &[u8; 32], right: &[u8; 32]) -> bool {
    left.iter().zip(right).fold(0, |differences, (left, right)| differences | (left ^ right)) == 0
}
