//! The egress process: makes the HTTP requests of all sessions of a daemon, in a jail of its own. The only process with a network.
//!
//! Invariants of absence: opens no file after its start, starts no process, has no access to the control database or a JavaScript
//! value; decides no grant (the supervisor has checked each request), but checks each address. It exits when its channel is closed.
//!
//! Reading order:
//! - [`role`]: the process: its channel, its jail, then requests
//! - [`jail`]: the steps of the jail in order
//! - [`channel`]: frames on the socket to the supervisor
//! - [`exchange`]: one request with its response
//! - [`lane`]: the work of one owner, which takes turns with that of others
//! - [`client`]: connections: which address, TLS, HTTP/1.1 or HTTP/2, and the pools of owners
//! - [`metered`]: what a connection reads at a time, and what a server may send besides its responses
//! - [`frames`], [`held`]: the frames of HTTP/2 that arrive, and the memory of what nobody has taken yet
//! - [`address`]: which addresses a request may connect to
//! - [`resolve`], [`dns`]: names to addresses
//! - [`failure`]: errors with the codes of Node

pub mod address;
pub mod channel;
pub mod client;
pub mod dns;
#[cfg(test)]
mod dns_floods;
pub mod exchange;
pub mod failure;
#[cfg(test)]
mod floods;
mod frames;
mod held;
pub mod jail;
mod lane;
mod metered;
#[cfg(test)]
mod name_tests;
pub mod resolve;
pub mod role;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tls_servers;

use std::ffi::OsString;
use std::process::ExitCode;

/// First argument of the hidden mode.
pub const MODE: &str = "egress";

/// Runs the egress process if the arguments name its hidden mode; to be called before anything else starts.
pub fn dispatch(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    (arguments.nth(1)? == MODE).then(|| role::run(arguments))
}
