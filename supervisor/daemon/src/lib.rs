//! The supervisor as a process: start, serve, stop; or embedded in a command, for one script.
//!
//! Owns the order of the steps (store before socket, socket before jail, READY last; the reverse at the end) and nothing
//! else: no verb, no rule about sessions.
//!
//! Reading order:
//! - [`config`]: the operator's settings; [`shares`], [`cgroups`], [`net`], [`http_settings`]: parts of them
//! - [`users`]: the user that a daemon of root becomes; [`prepare`]: how, with [`give`]; [`rights`]: what a supervisor gives up
//! - [`descriptors`]: how many of them what owners share may take; [`inherited`]: those of its starter; [`passed`]: the listening
//!   sockets among them
//! - [`assembly`]: assembles store, runtime and verbs
//! - [`mod@serve`]: start, serving and stop of the daemon; [`http`], [`socket`]: its listeners; [`stop_signals`]: its signals;
//!   [`notify`]: its reports to the service manager; [`reload`]: what it reads again
//! - [`idle`]: the exit of a daemon that was started on demand
//! - [`embedded`]: a supervisor without an API

mod assembly;
mod cgroups;
mod config;
mod databases;
mod descriptors;
mod embedded;
mod error;
mod give;
mod http;
mod http_settings;
mod idle;
mod inherited;
mod lifeline;
mod net;
mod notify;
mod passed;
mod prepare;
mod pressure;
mod reload;
mod rights;
mod serve;
mod shares;
mod socket;
mod stop_signals;
mod trim;
mod users;
mod watchdog;

pub use cgroups::{CgroupConfig, SubtreeSetting};
pub use config::{Config, ConfigError, ConfigFile, ConfigSource, HttpConfig, SYSTEM_RUNTIME, check_command};
pub use embedded::Embedded;
pub use error::DaemonError;
pub use give::GiveError;
pub use inherited::close_leaked;
pub use net::{SecretsError, operator_rule, read_secrets};
pub use passed::PassedSocketError;
pub use prepare::PreparedDaemon;
pub use rights::dispatch;
pub use serve::{DaemonEnd, serve};
pub use shares::ShareConfig;
pub use socket::SocketError;
pub use users::{SERVICE_USER, UserConfig};
pub use vm_system_api::rest::TokenError;
pub use vm_system_policy::{NetRule, Operator};
pub use vm_system_runtime::script_input::{InputReader, ScriptInput, script_input};
pub use vm_system_runtime::{examine_host, type_checks};
pub use vm_system_spawn::{SandboxMode, ServiceIds, SpawnConfig};
pub use vm_system_store::{Durability, check_file as check_database};
