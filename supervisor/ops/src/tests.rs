//! Every verb and every refusal, through a store in a temporary folder and a runtime without processes.

mod audit;
mod executions;
mod fake;
mod idempotency;
mod parts;
mod references;
mod sessions;
mod supervisor;
mod templates;
