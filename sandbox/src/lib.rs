//! The walls, as safe functions: the only crate that talks to namespaces, mounts, capabilities, Landlock, seccomp,
//! rlimits, pidfds and ancillary data. It knows no session, no message and no other crate of ours; who calls what, in
//! which order, is the keeper's business (`worker::keeper`) and the supervisor's (`supervisor::spawn`).
//!
//! Reading order:
//! - [`step`]: the named steps of building a jail, how one fails, and the knob that fixes it
//! - [`process`], [`pidfd`], [`interrupt`]: starting, watching, stopping and interrupting processes
//! - [`socket`]: `SOCK_SEQPACKET` with descriptors and kernel-attested senders
//! - [`namespaces`], [`root`], [`privileges`], [`landlock`], [`rlimit`]: the layers below seccomp
//! - [`beneath`]: whether files can be opened beneath a folder at all
//! - [`identity`], [`reader`]: a user with all groups, and a thread that opens files with its rights
//! - [`command_root`]: the root directory of a command
//! - [`seccomp`]: the tables (one row, one reason), their compiler and the notification of the one clone row
//! - [`selftest`]: sacrificed children prove the walls from inside
//! - [`inspect`]: the same seen from outside, through `/proc`
//! - [`doctor`]: what this machine can do

pub mod beneath;
pub mod command_root;
pub mod doctor;
pub mod identity;
pub mod inspect;
pub mod interrupt;
pub mod landlock;
pub mod namespaces;
pub mod pidfd;
pub mod privileges;
pub mod process;
pub mod reader;
pub mod rlimit;
pub mod root;
pub mod seccomp;
pub mod selftest;
pub mod socket;
pub mod step;
mod sys;
