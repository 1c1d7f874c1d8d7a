//! The walls of the jail, as safe functions: the only crate that uses namespaces, mounts, capabilities, Landlock, seccomp,
//! rlimits, pidfds and ancillary data. Knows nothing of sessions, messages and the other crates of the workspace; the keeper
//! (`worker::keeper`) and the supervisor (`supervisor::spawn`) call these functions in the required order.
//!
//! Reading order:
//! - [`step`]: the named steps of building a jail, their failures, and the setting that fixes each
//! - [`process`], [`pidfd`], [`interrupt`]: starting, watching, stopping and interrupting processes
//! - [`socket`]: `SOCK_SEQPACKET` with descriptors and kernel-attested senders
//! - [`socket_diagnosis`]: which user has an end of a TCP connection of this machine open
//! - [`namespaces`], [`root`], [`privileges`], [`landlock`], [`rlimit`]: the layers below seccomp
//! - [`user_namespace`]: user namespaces for users who may not make any
//! - [`beneath`]: folders and files beneath a folder
//! - [`private_file`]: files that only their owner may read
//! - [`identity`]: a user with all groups
//! - [`command_root`]: the root directory of a command
//! - [`seccomp`]: the tables (a reason for each row), their compiler, and the notification of the clone row
//! - [`selftest`]: child processes that test the walls from inside
//! - [`oom_kills`]: the count of processes that the kernel has killed for lack of memory
//! - [`cgroup`]: the daemon's subtree of cgroup v2 and the groups in it
//! - [`inspect`]: checks of the walls from outside, through `/proc`
//! - [`doctor`]: which layers this machine supports

pub mod beneath;
pub mod cgroup;
pub mod command_root;
pub mod doctor;
pub mod heap;
pub mod identity;
pub mod inspect;
pub mod interrupt;
pub mod landlock;
pub mod namespaces;
pub mod oom_kills;
pub mod pidfd;
pub mod private_file;
pub mod privileges;
pub mod process;
pub mod rlimit;
pub mod root;
pub mod seccomp;
pub mod selftest;
pub mod socket;
pub mod socket_diagnosis;
pub mod step;
mod sys;
pub mod user_namespace;
