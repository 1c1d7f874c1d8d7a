//! One suite for both stores, and what only a real file can show. Nothing here sleeps; every wait is on an event.

mod failures;
mod fixture;
mod golden;
mod opening;
mod quota;
mod reading;
mod same;
mod suite;
