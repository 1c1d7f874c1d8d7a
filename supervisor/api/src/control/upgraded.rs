//! Clients that come over an HTTP connection: the REST API has identified their caller, and their connection has its share of the
//! HTTP connections. From the hello on they are served as those of the control socket.

use super::connection::{self, ClientReader, ControlContext, Disconnect};
use super::{API, ControlLimits, ServerState};
use std::future::Future;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite, ReadHalf};
use vm_system_ops::{Caller, VerbHandler};
use vm_system_runtime::shares::Share;

/// Over TCP, the end of what a client sends looks the same as its end.
impl<S: AsyncRead> ClientReader for ReadHalf<S> {
    fn hung_up(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
}

/// The state that these clients share.
pub(crate) struct UpgradedClients {
    context: ControlContext,
}

impl UpgradedClients {
    pub(crate) fn new(handler: Arc<dyn VerbHandler>, state: ServerState) -> Self {
        Self { context: ControlContext { handler, limits: ControlLimits::default(), state } }
    }

    /// Serves one client until it disconnects, or its share of the connections is needed for another client.
    pub(crate) async fn serve<S>(&self, stream: S, caller: Caller, slot: Arc<Share>)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let owner = caller.owner.clone();
        let caller = Caller { api: API, ..caller };
        let (reader, writer) = tokio::io::split(stream);
        let ended = tokio::select! {
            ended = connection::serve(&self.context, (reader, writer), caller, (Arc::clone(&slot), None)) => ended,
            () = slot.evicted() => Err(Disconnect::Evicted),
        };
        match ended {
            Ok(()) => tracing::debug!(%owner, "client left"),
            Err(reason) if reason.is_usual() => {
                tracing::debug!(%owner, %reason, "client left");
            }
            Err(reason) => tracing::warn!(%owner, %reason, "client disconnected"),
        }
    }
}
