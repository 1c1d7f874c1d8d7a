//! What the store promises its callers, and what only a real file can show. Nothing here sleeps; every wait is on an event.

mod failures;
mod fixture;
mod golden;
mod opening;
mod quota;
mod reading;
mod suite;
mod turns;
