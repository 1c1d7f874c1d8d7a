//! Input of a client on the control socket: frames of any bytes, and the verbs that they name, on a store in a temporary folder.
//! An input is a list of steps ([`vm_system_fuzz::pieces`]); the kind says whether the content is a request or a stream of frames.
#![cfg_attr(fuzzing, no_main)]

use std::cell::RefCell;
use std::time::Duration;
use vm_system_api::control::frame;
use vm_system_fuzz::pieces::Pieces;
use vm_system_fuzz::verbs;
use vm_system_ops::Ops;
use vm_system_protocol::codec::decode;
use vm_system_protocol::control::{ClientFrame, ClientHello, Op};
use vm_system_protocol::limits::CONTROL_FRAME_BYTES;

/// Inputs on one database.
const INPUTS: u32 = 500;

struct Supervisor {
    runtime: tokio::runtime::Runtime,
    ops: Ops,
    inputs: u32,
}

impl Supervisor {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Self { runtime: runtime.expect("a runtime"), ops: verbs::ops(), inputs: 0 }
    }
}

thread_local! {
    static SUPERVISOR: RefCell<Option<Supervisor>> = const { RefCell::new(None) };
}

async fn request(ops: &Ops, frame: ClientFrame) {
    let ClientFrame::Request { idempotency_key, op, .. } = frame else { return };
    // Without a follower these wait for one.
    if !op.follows() {
        let _ = verbs::run(ops, op, idempotency_key).await;
    }
}

async fn stream(ops: &Ops, mut bytes: &[u8]) {
    let patience = Duration::from_secs(1);
    if frame::read::<ClientHello, _>(&mut bytes, CONTROL_FRAME_BYTES, patience).await.is_err() {
        return;
    }
    while let Ok(Some(frame)) = frame::read(&mut bytes, CONTROL_FRAME_BYTES, patience).await {
        request(ops, frame).await;
    }
}

vm_system_fuzz::fuzz_target!(|data: &[u8]| {
    SUPERVISOR.with_borrow_mut(|slot| {
        let supervisor = slot.get_or_insert_with(Supervisor::new);
        let Supervisor { runtime, ops, inputs } = supervisor;
        runtime.block_on(async {
            for (kind, content) in Pieces::new(data) {
                match kind % 4 {
                    0 => stream(ops, content).await,
                    1 => {
                        if let Ok(op) = decode::<Op>(content) {
                            request(
                                ops,
                                ClientFrame::Request {
                                    id: 1,
                                    idempotency_key: None,
                                    cancel_on_disconnect: false,
                                    op,
                                },
                            )
                            .await;
                        }
                    }
                    _ => {
                        if let Ok(frame) = decode(content) {
                            request(ops, frame).await;
                        }
                    }
                }
            }
        });
        *inputs += 1;
        if *inputs >= INPUTS {
            *slot = None;
        }
    });
});
