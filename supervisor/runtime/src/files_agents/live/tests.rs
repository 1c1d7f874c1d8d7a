//! The bound of what an agent leaves unread.

use super::*;
use vm_system_sandbox::socket;

/// The socket takes some orders, the queue behind it [`BACKLOG`]: the agent is ended, and nothing more is kept for it.
#[tokio::test]
async fn agent_that_reads_nothing_is_left_a_bounded_number_of_orders() {
    let (ours, _theirs) = socket::pair().expect("a channel");
    let channel = FilesAgentChannel::new(ours).expect("a channel");
    let (ready, _is_ready) = oneshot::channel();
    let stop = CancellationToken::new();
    let (agent, outgoing) = FilesAgent::new((1, "user".to_owned()), channel, ready, stop);
    // More than any socket takes.
    let most = BACKLOG + 100_000;
    let refused =
        (0..most as u64).find(|call| agent.send(&ToFilesAgent::Ping { call: *call }, None).is_err());
    assert!(refused.is_some(), "{} orders wait", outgoing.len());
    assert_eq!(outgoing.len(), BACKLOG);
    assert!(agent.overrun.is_cancelled());
}
