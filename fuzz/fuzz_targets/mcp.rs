//! Input of an agent on standard streams: any bytes. The server responds with lines of JSON and ends when its input ends. The verbs
//! refuse everything.
#![cfg_attr(fuzzing, no_main)]

use std::cell::OnceCell;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use vm_system_api::mcp::lines::LineTransport;
use vm_system_api::mcp::{Extensions, McpBackend, McpClient, VerbFuture, serve};
use vm_system_ops::IdempotencyKey;
use vm_system_protocol::control::{CurrentGet, ErrorCode, Op, OpError, Reply, Verb as _};

struct NoBackend;

impl McpBackend for NoBackend {
    fn client(&self, _: &Extensions) -> Result<McpClient, String> {
        Ok(McpClient { key: Some("fuzz".to_owned()), ..McpClient::default() })
    }

    fn perform<'a>(
        &'a self,
        _: &'a McpClient,
        op: Op,
        _: IdempotencyKey,
    ) -> VerbFuture<'a, Result<Reply, OpError>> {
        let reply = match op {
            Op::CurrentGet(_) => Ok(CurrentGet::any_reply(None)),
            _ => Err(OpError::new(ErrorCode::NotFound, "nothing is here")),
        };
        Box::pin(std::future::ready(reply))
    }
}

thread_local! {
    static RUNTIME: OnceCell<tokio::runtime::Runtime> = const { OnceCell::new() };
}

/// So that messages after it reach the tools.
const GREETING: &[u8] = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"f","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
"#;

vm_system_fuzz::fuzz_target!(|data: &[u8]| {
    let Some((&first, data)) = data.split_first() else { return };
    RUNTIME.with(|runtime| {
        let runtime = runtime.get_or_init(|| {
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
        });
        runtime.block_on(async {
            let (ours, theirs) = tokio::io::duplex(1 << 16);
            let (read, write) = tokio::io::split(theirs);
            let serving = tokio::spawn(serve(Arc::new(NoBackend), LineTransport::new(read, write)));
            let (mut read, mut write) = tokio::io::split(ours);
            let mut output = Vec::new();
            let send = async {
                if first % 2 == 0 {
                    let _ = write.write_all(GREETING).await;
                }
                let _ = write.write_all(data).await;
                let _ = write.write_all(b"\n").await;
                let _ = write.shutdown().await;
            };
            let receive = async {
                let _ = read.read_to_end(&mut output).await;
            };
            tokio::join!(send, receive);
            serving.await.expect("no panic");
            for line in output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                let parsed: Result<serde_json::Value, _> = serde_json::from_slice(line);
                assert!(parsed.is_ok(), "a line that is no JSON: {}", String::from_utf8_lossy(line));
            }
        });
    });
});
