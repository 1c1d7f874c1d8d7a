//! One broker process with its channel: start, check of its walls from outside, exchange of one call, end. The holder of a
//! `ConnectedBroker` must end it: dropping it closes the channel and the process exits by itself, but it is not reaped.

use super::channel::{BrokerChannelError, Channel};
use super::{AllowedCall, BrokerConfig};
use crate::files_agents::FilesChild;
use crate::shares::Holder;
use crate::workspaces::OpenWorkspace;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::time::timeout;
use vm_system_protocol::broker::{
    BrokerCall, BrokerReply, DatabaseReply, DatabaseRequest, FromBroker, FsReply, FsRequest, ToBroker,
};
use vm_system_protocol::files_agent::FilesProcess;
use vm_system_protocol::ids::ExecutionId;
use vm_system_protocol::limits::{FS_DIR_ENTRIES, FS_READ_BYTES};
use vm_system_protocol::worker::HostError;
use vm_system_sandbox::process::ExitStatus;
use vm_system_sandbox::socket;
use vm_system_spawn::broker::{
    BrokerFiles, DatabaseFiles, start_command, start_database_broker, start_file_broker,
};
use vm_system_spawn::child::ChildProcess;
use vm_system_spawn::{CommandGroup, OwnerGroup};

/// Why a broker failed. Its process is always ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum BrokerFailure {
    /// The process could not be started.
    #[error("it could not be started: {0}")]
    Start(#[from] io::Error),
    /// A wall could not be installed; the name of the wall or the error.
    #[error("it could not be jailed: {0}")]
    NotJailed(String),
    /// It could not be moved into its owner's group.
    #[error("it could not be moved into the cgroup of its owner: {0}")]
    Group(io::Error),
    /// The channel failed.
    #[error(transparent)]
    Channel(#[from] BrokerChannelError),
    /// The reply does not match the call.
    #[error("it broke the protocol: {0}")]
    Violation(&'static str),
    /// No reply within the deadline.
    #[error("it did not reply within {0} ms")]
    Late(u128),
    /// The broker's files take more than an honest broker writes.
    #[error("its databases, or those of its owner, are larger than [databases] permits")]
    Excessive,
}

/// A broker process: our own child, or one of the worktree's files agent.
#[derive(Debug)]
enum BrokerProcess {
    Own(ChildProcess),
    OfAgent(FilesChild),
}

impl BrokerProcess {
    /// As [`ChildProcess::missing_wall`]. A process of an agent protects its own user alone, whose agent could fake what is seen:
    /// its own report must suffice.
    fn missing_wall(&self) -> Option<&'static str> {
        match self {
            Self::Own(child) => child.missing_wall(),
            Self::OfAgent(_) => None,
        }
    }

    fn pid(&self) -> Option<u32> {
        match self {
            Self::Own(child) => Some(child.pid()),
            Self::OfAgent(_) => None,
        }
    }

    fn kill(&self) -> io::Result<()> {
        match self {
            Self::Own(child) => child.kill(),
            Self::OfAgent(child) => {
                child.kill();
                Ok(())
            }
        }
    }

    async fn ended(&mut self) -> io::Result<ExitStatus> {
        match self {
            Self::Own(child) => child.ended().await,
            Self::OfAgent(child) => child.ended().await,
        }
    }
}

/// A broker process with its channel.
#[derive(Debug)]
pub(super) struct ConnectedBroker {
    process: BrokerProcess,
    channel: Channel,
    calls: u64,
    /// The group of the broker's owner, or of its command; none without groups.
    group: BrokerGroup,
    /// The databases that it serves.
    workspace: Option<Arc<OpenWorkspace>>,
}

/// Keeps the group of a process while the process is used.
#[derive(Debug)]
enum BrokerGroup {
    None,
    Owner { _kept: Arc<OwnerGroup> },
    Command(CommandGroup),
}

impl ConnectedBroker {
    /// Starts the process for calls of files; usable after [`ConnectedBroker::ready`].
    pub(super) async fn start_for_files(
        config: &BrokerConfig,
        call: &AllowedCall,
    ) -> Result<Self, BrokerFailure> {
        let (channel, theirs) = channel(config)?;
        let process = FilesProcess::Broker { write: call.write };
        let process = start_for_files(call, process, &theirs, |files| {
            start_file_broker(&config.program, call.write, theirs.as_fd(), files)
        });
        Ok(Self::new(process.await?, channel))
    }

    /// Starts the process for calls of databases; usable after [`ConnectedBroker::ready`].
    pub(super) fn start_for_databases(
        config: &BrokerConfig,
        workspace: Option<Arc<OpenWorkspace>>,
    ) -> Result<Self, BrokerFailure> {
        let (channel, theirs) = channel(config)?;
        let user = config.service_ids.into();
        let folder = workspace.as_ref().map(|workspace| workspace.folder());
        let files = folder.as_ref().zip(workspace.as_ref()).map(|(folder, workspace)| DatabaseFiles {
            workspace: folder.as_fd(),
            max_bytes: workspace.limits().workspace_bytes,
        });
        let process = start_database_broker(&config.program, &user, theirs.as_fd(), files)?;
        Ok(Self { workspace, ..Self::new(BrokerProcess::Own(process), channel) })
    }

    /// The group of its owner. A process of an agent that the service manager has started stays in the unit of that agent: only root
    /// may move it, and the unit has limits of its own.
    async fn group_of(&self, config: &BrokerConfig, holder: &Holder) -> io::Result<Option<Arc<OwnerGroup>>> {
        let is_in_unit = config.agents_have_units && matches!(self.process, BrokerProcess::OfAgent(_));
        match (&config.groups, holder.owner()) {
            (Some(groups), Some(owner)) if !is_in_unit => groups.group_of(owner.as_str()).await.map(Some),
            _ => Ok(None),
        }
    }

    fn new(process: BrokerProcess, channel: Channel) -> Self {
        Self { process, channel, calls: 0, group: BrokerGroup::None, workspace: None }
    }

    /// The databases that it serves, if they have files.
    pub(super) fn workspace(&self) -> Option<Arc<OpenWorkspace>> {
        self.workspace.clone()
    }

    /// Starts the process of one command. It installs the walls around the command, not around itself, and fails closed.
    pub(super) async fn start_command(
        config: &BrokerConfig,
        call: &AllowedCall,
    ) -> Result<Self, BrokerFailure> {
        let (channel, theirs) = channel(config)?;
        let process = start_for_files(call, FilesProcess::Command, &theirs, |files| {
            start_command(&config.program, theirs.as_fd(), files)
        });
        Ok(Self::new(process.await?, channel))
    }

    /// Waits until the process of a command is ready for its call, and in a group of its own.
    pub(super) async fn command_ready(
        &mut self,
        config: &BrokerConfig,
        holder: &Holder,
    ) -> Result<(), BrokerFailure> {
        let late = |_| BrokerFailure::Late(config.start_deadline.as_millis());
        let group = self.group_of(config, holder).await.map_err(BrokerFailure::Group)?;
        let greeting = if let Some(group) = group {
            // The process that will start the command, whoever has started that process.
            let received = timeout(config.start_deadline, self.channel.receive_attested()).await;
            let (greeting, sender) = received.map_err(late)??;
            let moved = group.add_command(sender).await.map_err(BrokerFailure::Group)?;
            self.group = BrokerGroup::Command(moved);
            greeting
        } else {
            timeout(config.start_deadline, self.channel.receive()).await.map_err(late)??
        };
        if greeting == FromBroker::Ready { Ok(()) } else { Err(BrokerFailure::Violation("no greeting")) }
    }

    /// Waits until the broker reports that it is jailed, and checks that from outside; it is in its owner's group then.
    pub(super) async fn ready(
        &mut self,
        config: &BrokerConfig,
        holder: &Holder,
    ) -> Result<(), BrokerFailure> {
        let greeting = async {
            let Some(group) = self.group_of(config, holder).await.map_err(BrokerFailure::Group)? else {
                return Ok((self.channel.receive().await?, BrokerGroup::None));
            };
            let (greeting, sender) = self.channel.receive_attested().await?;
            group.add(sender).await.map_err(BrokerFailure::Group)?;
            Ok::<_, BrokerFailure>((greeting, BrokerGroup::Owner { _kept: group }))
        };
        let late = |_| BrokerFailure::Late(config.start_deadline.as_millis());
        let (greeting, group) = timeout(config.start_deadline, greeting).await.map_err(late)??;
        self.group = group;
        match greeting {
            FromBroker::Ready => match self.process.missing_wall() {
                None => Ok(()),
                Some(wall) => Err(BrokerFailure::NotJailed(format!("{wall} is not in force"))),
            },
            FromBroker::Failed { message } => Err(BrokerFailure::NotJailed(message)),
            FromBroker::Reply { .. } => Err(BrokerFailure::Violation("a reply before a call")),
        }
    }

    /// One call and its reply; the reply must be of the requested kind and within the caps.
    pub(super) async fn exchange(
        &mut self,
        config: &BrokerConfig,
        execution: ExecutionId,
        request: BrokerCall,
    ) -> Result<Result<BrokerReply, HostError>, BrokerFailure> {
        self.calls += 1;
        let call = self.calls;
        let fits = expectation(&request);
        let deadline = match &request {
            BrokerCall::Exec { terms, .. } => {
                config.call_deadline + Duration::from_millis(u64::from(terms.timeout_ms))
            }
            _ => config.call_deadline,
        };
        let exchange = async {
            self.channel.send(&ToBroker::Call { call, execution, request }).await?;
            self.channel.receive().await
        };
        let message =
            timeout(deadline, exchange).await.map_err(|_| BrokerFailure::Late(deadline.as_millis()))??;
        match message {
            FromBroker::Reply { call: replied, reply } if replied == call => match reply {
                Ok(reply) if !fits(&reply) => Err(BrokerFailure::Violation("a reply of another kind")),
                reply => Ok(reply),
            },
            FromBroker::Reply { .. } => Err(BrokerFailure::Violation("a reply to another call")),
            FromBroker::Ready | FromBroker::Failed { .. } => Err(BrokerFailure::Violation("no reply")),
        }
    }

    /// Notifies the broker that an execution has ended.
    pub(super) async fn execution_ended(&mut self, config: &BrokerConfig) -> Result<(), BrokerFailure> {
        let sent = timeout(config.call_deadline, self.channel.send(&ToBroker::ExecutionEnded)).await;
        Ok(sent.map_err(|_| BrokerFailure::Late(config.call_deadline.as_millis()))??)
    }

    /// Waits until the process exits by itself and reaps it; cancel safe until the exit.
    pub(super) async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.process.ended().await
    }

    /// Whether the kernel has ended the command of this process for lack of memory.
    pub(super) fn ran_out_of_memory(&self) -> bool {
        matches!(&self.group, BrokerGroup::Command(group) if group.ran_out_of_memory())
    }

    /// Not of a process of a files agent.
    pub(super) fn pid(&self) -> Option<u32> {
        self.process.pid()
    }

    /// Kills the process and reaps it.
    pub(super) async fn end(mut self) {
        let pid = self.pid();
        if let Err(error) = self.process.kill() {
            tracing::warn!(pid, %error, "broker could not be killed");
        }
        if let Err(error) = self.process.ended().await {
            tracing::warn!(pid, %error, "broker could not be reaped");
        }
        if let BrokerGroup::Command(group) = self.group {
            // The command may have left processes behind.
            group.end();
        }
    }
}

/// Our end of a channel, and the process's.
fn channel(config: &BrokerConfig) -> io::Result<(Channel, OwnedFd)> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    // A user's process may have descriptors whose last close blocks.
    socket::refuse_descriptors(&ours)?;
    if config.groups.is_some() {
        // The process that sends the greeting is moved into its group, whoever has started it.
        socket::attest_senders(&ours)?;
    }
    Ok((Channel::new(UnixStream::from_std(ours)?), theirs.into()))
}

/// Starts a process that uses the worktree: by the files agent of its user, or with our own rights by `start`.
async fn start_for_files(
    call: &AllowedCall,
    process: FilesProcess,
    channel: &OwnedFd,
    start: impl FnOnce(BrokerFiles<'_>) -> io::Result<ChildProcess>,
) -> io::Result<BrokerProcess> {
    let cross_mounts = call.worktree.cross_mounts();
    if let Some(worktree) = call.worktree.own_handle() {
        return start(BrokerFiles { worktree, cross_mounts }).map(BrokerProcess::Own);
    }
    call.worktree.start(process, channel).await.map(BrokerProcess::OfAgent)
}

/// The check of a reply to this request.
fn expectation(request: &BrokerCall) -> Box<dyn Fn(&BrokerReply) -> bool + Send> {
    match request {
        BrokerCall::Fs { request, terms } => {
            let fits = files(request);
            let (bytes, entries) = (terms.max_file_bytes as usize, terms.max_entries as usize);
            Box::new(move |reply| match reply {
                BrokerReply::Fs(reply) => {
                    fits(reply)
                        && match reply {
                            FsReply::Bytes(content) => content.len() <= bytes.min(FS_READ_BYTES),
                            FsReply::Entries(list) => list.len() <= entries.min(FS_DIR_ENTRIES),
                            _ => true,
                        }
                }
                _ => false,
            })
        }
        BrokerCall::Database { request: DatabaseRequest::Query { .. }, terms } => {
            let rows = terms.max_rows as usize;
            Box::new(move |reply| match reply {
                BrokerReply::Database(DatabaseReply::Rows { columns, values }) => {
                    (columns.is_empty() && values.is_empty())
                        || (values.len() / columns.len().max(1) <= rows
                            && values.len() % columns.len().max(1) == 0)
                }
                _ => false,
            })
        }
        BrokerCall::Database { request: DatabaseRequest::Exec { .. }, .. } => {
            Box::new(|reply| matches!(reply, BrokerReply::Database(DatabaseReply::Changed { .. })))
        }
        BrokerCall::Database { .. } => {
            Box::new(|reply| matches!(reply, BrokerReply::Database(DatabaseReply::Done)))
        }
        BrokerCall::Exec { terms, .. } => {
            let most = terms.max_output_bytes as usize;
            Box::new(move |reply| match reply {
                BrokerReply::Exec(reply) => reply.stdout.len() <= most && reply.stderr.len() <= most,
                _ => false,
            })
        }
    }
}

fn files(request: &FsRequest) -> fn(&FsReply) -> bool {
    match request {
        FsRequest::ReadFile { .. } => |reply| matches!(reply, FsReply::Bytes(_)),
        FsRequest::ReadDir { .. } => |reply| matches!(reply, FsReply::Entries(_)),
        FsRequest::Stat { .. } => |reply| matches!(reply, FsReply::Stat(_)),
        FsRequest::Exists { .. } => |reply| matches!(reply, FsReply::Bool(_)),
        FsRequest::RealPath { .. } | FsRequest::MakeDir { .. } => |reply| matches!(reply, FsReply::Path(_)),
        FsRequest::Copy { .. } => |reply| matches!(reply, FsReply::Written(_)),
        FsRequest::Access { .. }
        | FsRequest::Write { .. }
        | FsRequest::RemoveFile { .. }
        | FsRequest::RemoveDir { .. }
        | FsRequest::Remove { .. }
        | FsRequest::Rename { .. } => |reply| matches!(reply, FsReply::Done),
    }
}
