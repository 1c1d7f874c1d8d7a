//! Ids of sessions over HTTP. An id is signed for its owner with a key that outlives the daemon, and has in it what a later daemon
//! needs to continue the session: nothing is stored for a session.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use rmcp::model::{
    ClientCapabilities, Implementation, InitializeRequestParams, ProtocolVersion, TASKS_EXTENSION_ID,
};
use rmcp::transport::streamable_http_server::session::{SessionState, SessionStore, SessionStoreError};
use serde_json::json;
use sha2::Sha256;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use uuid::Uuid;
use vm_system_record::Owner;

/// Secret of the ids; 32 random bytes.
pub type SessionKey = [u8; 32];

/// The content of an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SessionClaim {
    /// The id within this daemon.
    pub(super) inner: String,
    /// This daemon created the session.
    pub(super) is_ours: bool,
    /// When (Unix time, milliseconds).
    pub(super) began: u64,
    version: String,
    has_tasks: bool,
}

impl SessionClaim {
    /// The handshake with which the session began, as far as it matters.
    pub(super) fn handshake(&self) -> InitializeRequestParams {
        let mut capabilities = ClientCapabilities::default();
        if self.has_tasks {
            capabilities.extensions = serde_json::from_value(json!({ TASKS_EXTENSION_ID: {} })).ok();
        }
        let params = InitializeRequestParams::new(capabilities, Implementation::new("restored", ""));
        match serde_json::from_value::<ProtocolVersion>(json!(self.version)) {
            Ok(version) => params.with_protocol_version(version),
            Err(_) => params,
        }
    }
}

/// Signs and checks ids.
pub(super) struct SessionIds {
    key: SessionKey,
    /// Of this daemon's run.
    run: String,
}

impl SessionIds {
    pub(super) fn new(key: SessionKey) -> Self {
        Self { key, run: Uuid::new_v4().simple().to_string()[..12].to_owned() }
    }

    fn code(&self, owner: &Owner, claim: &str) -> Hmac<Sha256> {
        // A key of any length is accepted.
        let Ok(mut code) = Hmac::<Sha256>::new_from_slice(&self.key) else {
            unreachable!("HMAC takes keys of every length")
        };
        code.update(owner.as_str().as_bytes());
        code.update(&[0]);
        code.update(claim.as_bytes());
        code
    }

    /// The id for the client.
    pub(super) fn sign(&self, owner: &Owner, inner: &str, begun: &InitializeRequestParams) -> String {
        let tasks = if begun.capabilities.supports_tasks() { "t" } else { "" };
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let claim = format!("{inner}.{}.{}.{tasks}.{began:x}", self.run, begun.protocol_version.as_str());
        let code = URL_SAFE_NO_PAD.encode(self.code(owner, &claim).finalize().into_bytes());
        format!("{claim}.{code}")
    }

    /// The content of a client's id, if it was signed for this owner.
    pub(super) fn check(&self, owner: &Owner, id: &str) -> Option<SessionClaim> {
        let (claim, code) = id.rsplit_once('.')?;
        let code = URL_SAFE_NO_PAD.decode(code).ok()?;
        self.code(owner, claim).verify_slice(&code).ok()?;
        let mut parts = claim.split('.');
        let (inner, run, version, tasks) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let began = u64::from_str_radix(parts.next()?, 16).ok()?;
        Some(SessionClaim {
            inner: inner.to_owned(),
            is_ours: run == self.run,
            began,
            version: version.to_owned(),
            has_tasks: tasks == "t",
        })
    }
}

/// Handshakes of sessions whose first request is handled at the moment, by the id within this daemon. The service stores that of a
/// new session here, and loads that of one that an earlier daemon created.
#[derive(Default)]
pub(super) struct Handshakes(Mutex<HashMap<String, InitializeRequestParams>>);

impl Handshakes {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, InitializeRequestParams>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn put(&self, inner: &str, begun: InitializeRequestParams) {
        self.lock().insert(inner.to_owned(), begun);
    }

    pub(super) fn take(&self, inner: &str) -> Option<InitializeRequestParams> {
        self.lock().remove(inner)
    }
}

#[async_trait::async_trait]
impl SessionStore for Handshakes {
    async fn load(&self, id: &str) -> Result<Option<SessionState>, SessionStoreError> {
        Ok(self.lock().get(id).cloned().map(SessionState::new))
    }

    async fn store(&self, id: &str, state: &SessionState) -> Result<(), SessionStoreError> {
        self.put(id, state.initialize_params.clone());
        Ok(())
    }

    async fn delete(&self, id: &str) -> Result<(), SessionStoreError> {
        self.lock().remove(id);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_valid_for_their_owner_and_key_only() {
        let (alice, bob) = (Owner::new("alice"), Owner::new("bob"));
        let (first, later) = (SessionIds::new([1; 32]), SessionIds::new([1; 32]));
        let begun: InitializeRequestParams = serde_json::from_value(json!({
            "protocolVersion": "2025-06-18", "clientInfo": { "name": "a", "version": "1" },
            "capabilities": { "extensions": { TASKS_EXTENSION_ID: {} } },
        }))
        .expect("a handshake");
        let id = first.sign(&alice, "8d5c", &begun);
        assert!(id.bytes().all(|byte| byte.is_ascii_graphic()), "{id}");
        let claim = first.check(&alice, &id).expect("valid");
        assert_eq!((claim.inner.as_str(), claim.is_ours), ("8d5c", true));
        let claim = later.check(&alice, &id).expect("valid for a later daemon");
        assert!(!claim.is_ours);
        let restored = claim.handshake();
        assert_eq!(restored.protocol_version.as_str(), "2025-06-18");
        assert!(restored.capabilities.supports_tasks());
        assert_eq!(first.check(&bob, &id), None);
        assert_eq!(SessionIds::new([2; 32]).check(&alice, &id), None);
        for forged in
            [id.replacen("8d5c", "8d5d", 1), format!("{id}A"), id[..id.len() - 4].to_owned(), String::new()]
        {
            assert_eq!(first.check(&alice, &forged), None, "{forged}");
        }
    }
}
