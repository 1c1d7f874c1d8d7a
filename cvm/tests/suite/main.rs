//! The compiler and the machine, through the crate's public functions. One test binary for all that takes no folder or setting of its
//! own.

#[path = "../common/compared.rs"]
mod compared;
#[path = "../common/hosted.rs"]
mod hosted;
#[path = "../common/programs.rs"]
mod programs;

mod bytes;
mod console;
mod dead_values;
mod errors;
mod exact_limits;
mod fetch;
mod intl;
mod item_costs;
mod items;
mod limits;
mod locale;
mod modules;
mod plan_executor;
mod rebuilt;
mod results;
mod same_as_quickjs;
mod top_level;
mod web;
