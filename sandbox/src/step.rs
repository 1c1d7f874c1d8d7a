//! The named steps of building a jail: every failure names its step, the errno and the setting that fixes it.

use std::fmt;
use std::io;

/// A step of building a jail, in the order of execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum JailStep {
    /// Taking over the descriptors that the supervisor passed.
    Descriptors = 1,
    /// Changing from root to the service user.
    ServiceUser = 2,
    /// `/proc/self/oom_score_adj`.
    OomScore = 3,
    /// `unshare(CLONE_NEWUSER)`.
    UserNamespace = 4,
    /// `/proc/self/uid_map` and `gid_map`.
    IdMap = 5,
    /// pid, network, IPC, UTS and mount namespaces.
    Namespaces = 6,
    /// Becoming pid 1 of the new pid namespace.
    Fork = 7,
    /// The second exec, inside the namespaces.
    SecondExec = 8,
    /// Session, umask, signal dispositions.
    Signals = 9,
    /// `user.max_user_namespaces = 0` inside.
    NestedNamespaces = 10,
    /// `pivot_root` into an empty read-only tmpfs, then chroot.
    Root = 11,
    /// Constant resource limits.
    Rlimits = 12,
    /// Capabilities, securebits, `no_new_privs`, dumpable.
    Privileges = 13,
    /// Memory-deny-write-execute.
    Mdwe = 14,
    /// Landlock.
    Landlock = 15,
    /// The self-test.
    SelfTest = 16,
    /// Starting the first zygote.
    Zygote = 17,
    /// `listen` on the adoption socket.
    Listen = 18,
    /// The seccomp filter.
    Seccomp = 19,
    /// The control channel itself.
    Channel = 20,
    /// `openat2`, which resolves every path beneath a worktree; the supervisor tries it before it builds a jail.
    OpenBeneath = 21,
    /// Joining the cgroup that the supervisor passed.
    Cgroup = 22,
}

impl JailStep {
    /// All steps, in order.
    pub const ALL: [Self; 22] = [
        Self::Descriptors,
        Self::ServiceUser,
        Self::OomScore,
        Self::UserNamespace,
        Self::IdMap,
        Self::Namespaces,
        Self::Fork,
        Self::SecondExec,
        Self::Signals,
        Self::NestedNamespaces,
        Self::Root,
        Self::Rlimits,
        Self::Privileges,
        Self::Mdwe,
        Self::Landlock,
        Self::SelfTest,
        Self::Zygote,
        Self::Listen,
        Self::Seccomp,
        Self::Channel,
        Self::OpenBeneath,
        Self::Cgroup,
    ];

    /// The step with this number on the wire.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|step| *step as u8 == number)
    }

    /// The name that messages show.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Descriptors => "inherited descriptors",
            Self::ServiceUser => "change to the service user",
            Self::OomScore => "oom_score_adj",
            Self::UserNamespace => "user namespace",
            Self::IdMap => "id map of the user namespace",
            Self::Namespaces => "pid, network, IPC, UTS and mount namespaces",
            Self::Fork => "first process of the jail",
            Self::SecondExec => "second exec inside the namespaces",
            Self::Signals => "session and signals",
            Self::NestedNamespaces => "ban of nested user namespaces",
            Self::Root => "empty root directory",
            Self::Rlimits => "resource limits",
            Self::Privileges => "capabilities and no_new_privs",
            Self::Mdwe => "memory-deny-write-execute",
            Self::Landlock => "Landlock",
            Self::SelfTest => "self-test",
            Self::Zygote => "first zygote",
            Self::Listen => "adoption socket",
            Self::Seccomp => "seccomp filter",
            Self::Channel => "control channel",
            Self::Cgroup => "cgroup",
            Self::OpenBeneath => "opening files beneath a folder (openat2)",
        }
    }

    /// The setting with which an operator can fix a failure with this errno.
    pub fn knob(self, errno: i32) -> &'static str {
        match (self, errno) {
            (Self::UserNamespace, libc::ENOSPC) => {
                "this host allows no more user namespaces: raise the limit, sysctl user.max_user_namespaces=1024 (also in the outer \
                 container; it holds for root, too), or accept less with --sandbox no-userns"
            }
            (Self::UserNamespace | Self::IdMap, libc::EPERM | libc::EACCES) => {
                Refusal::found().knob().unwrap_or(
                    "allow unprivileged user namespaces: install the shipped AppArmor profile systemd/apparmor.d/vm-system, or \
                     sysctl kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu); sysctl kernel.unprivileged_userns_clone=1 \
                     (Debian); a container's seccomp profile must allow unshare(CLONE_NEWUSER); in a systemd unit remove \
                     RestrictNamespaces=; or use a daemon that root starts, whose spawn helper makes them; or accept less with \
                     --sandbox no-userns",
                )
            }
            (Self::UserNamespace, libc::EINVAL) => "use a kernel with CONFIG_USER_NS",
            (Self::Namespaces, libc::ENOSPC) => "raise sysctl user.max_{pid,net,ipc,uts,mnt}_namespaces",
            (Self::Namespaces, _) => Refusal::found().knob().unwrap_or(
                "let user namespaces carry capabilities: sysctl kernel.apparmor_restrict_unprivileged_userns=0; \
                 in a systemd unit check RestrictNamespaces= and SystemCallFilter=",
            ),
            (Self::ServiceUser, _) => {
                "give the daemon CAP_SETUID and CAP_SETGID or start it as the service user"
            }
            (Self::SecondExec, libc::EACCES) => "make the binary readable and executable for all (mode 0755)",
            (Self::Root, _) => {
                "allow mount, mount_setattr, umount2, pivot_root and chroot: SystemCallFilter=@mount in the unit; \
                 the AppArmor profile or container must allow mounts inside a user namespace"
            }
            (Self::Seccomp, libc::EINVAL) => "use a kernel >= 5.5 with CONFIG_SECCOMP_FILTER",
            (Self::Seccomp, libc::EBUSY) => "an outer seccomp notifier is in the way: start outside of it",
            (Self::Landlock, _) => "boot with landlock in the lsm= list, or a kernel >= 5.13",
            (Self::OpenBeneath, libc::EPERM | libc::EACCES | libc::ENOSYS) => {
                "allow the system call openat2: in a systemd unit remove RestrictSUIDSGID=yes, and DynamicUser=yes, \
                 which implies it, and check SystemCallFilter=; a container needs a seccomp profile that knows the \
                 call; the kernel must be >= 5.6"
            }
            (Self::Mdwe, libc::EINVAL) => "use a kernel >= 6.3",
            (Self::Fork, libc::EAGAIN) => "raise the process limit (TasksMax=, ulimit -u)",
            (_, libc::EMFILE | libc::ENFILE) => "raise the descriptor limit (LimitNOFILE=, ulimit -n)",
            (_, libc::ENOMEM) => "free memory or raise MemoryMax=",
            _ => "run `vm-system ops doctor` for the layers as this machine has them",
        }
    }
}

/// The setting of this host that refuses user namespaces to users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    /// `kernel.apparmor_restrict_unprivileged_userns=1`: a program without a profile makes namespaces without capabilities, or none.
    AppArmor,
    /// `kernel.unprivileged_userns_clone=0`.
    Clone,
    Unknown,
}

impl Refusal {
    fn found() -> Self {
        Self::from_settings(|setting| std::fs::read_to_string(format!("/proc/sys/kernel/{setting}")).ok())
    }

    fn from_settings(read: impl Fn(&str) -> Option<String>) -> Self {
        let is = |setting: &str, value: &str| read(setting).is_some_and(|text| text.trim() == value);
        if is("apparmor_restrict_unprivileged_userns", "1") {
            Self::AppArmor
        } else if is("unprivileged_userns_clone", "0") {
            Self::Clone
        } else {
            Self::Unknown
        }
    }

    fn knob(self) -> Option<&'static str> {
        match self {
            Self::AppArmor => Some(
                "AppArmor refuses user namespaces to programs without a profile (kernel.apparmor_restrict_unprivileged_userns=1): \
                 install the shipped profile systemd/apparmor.d/vm-system as /etc/apparmor.d/vm-system, with the path of this \
                 program, and load it with `apparmor_parser -r /etc/apparmor.d/vm-system`; or sysctl \
                 kernel.apparmor_restrict_unprivileged_userns=0; or use a daemon that root starts, whose spawn helper makes them; \
                 or accept less with --sandbox no-userns",
            ),
            Self::Clone => Some(
                "this kernel refuses user namespaces to users (kernel.unprivileged_userns_clone=0): sysctl \
                 kernel.unprivileged_userns_clone=1; or use a daemon that root starts, whose spawn helper makes them; or accept \
                 less with --sandbox no-userns",
            ),
            Self::Unknown => None,
        }
    }
}

impl fmt::Display for JailStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A failed step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepError {
    /// The step that failed.
    pub step: JailStep,
    /// The operating system's error number; 0 if the step failed without one.
    pub errno: i32,
}

impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, errno } = self;
        if errno == &0 {
            write!(f, "the sandbox step \"{step}\" failed: the wall does not hold; {}", step.knob(0))
        } else {
            let error = io::Error::from_raw_os_error(*errno);
            write!(f, "the sandbox step \"{step}\" failed: {error}; to fix: {}", step.knob(*errno))
        }
    }
}

impl std::error::Error for StepError {}

/// Names the step of a failure.
pub trait AtStep<T> {
    /// Turns any OS error into this step's failure.
    fn at_step(self, step: JailStep) -> Result<T, StepError>;
}

impl<T, E: Into<io::Error>> AtStep<T> for Result<T, E> {
    fn at_step(self, step: JailStep) -> Result<T, StepError> {
        self.map_err(|error| StepError { step, errno: error.into().raw_os_error().unwrap_or(libc::EIO) })
    }
}

/// A layer of the jail, as reported by `ops doctor` and at start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Layer {
    /// Fresh exec, clean environment, own session (layer 1).
    FreshExec = 1,
    /// User, pid, net, IPC, UTS and mount namespaces (layer 2).
    Namespaces = 2,
    /// A cgroup namespace in addition (layer 2, optional).
    CgroupNamespace = 3,
    /// Nested user namespaces refused (layer 2).
    NoNestedNamespaces = 4,
    /// Empty read-only root without `/proc` (layer 3).
    EmptyRoot = 5,
    /// No capabilities, securebits, `no_new_privs`, not dumpable (layer 4).
    NoPrivileges = 6,
    /// Memory-deny-write-execute (layer 4; kernel >= 6.3).
    Mdwe = 7,
    /// Landlock: no file system, no TCP (layer 5).
    Landlock = 8,
    /// Landlock scopes signals and abstract sockets (layer 5; kernel >= 6.12).
    LandlockScopes = 9,
    /// seccomp allow list (layer 6).
    Seccomp = 10,
    /// Constant rlimits (layer 7).
    Rlimits = 11,
}

impl Layer {
    /// All layers, in the order in which they are built.
    pub const ALL: [Self; 11] = [
        Self::FreshExec,
        Self::Namespaces,
        Self::CgroupNamespace,
        Self::NoNestedNamespaces,
        Self::EmptyRoot,
        Self::NoPrivileges,
        Self::Mdwe,
        Self::Landlock,
        Self::LandlockScopes,
        Self::Seccomp,
        Self::Rlimits,
    ];

    /// Whether a jail is refused without this layer; the other layers depend on the kernel version.
    pub const fn is_required(self) -> bool {
        !matches!(self, Self::CgroupNamespace | Self::Mdwe | Self::LandlockScopes)
    }

    /// The name that tables show.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FreshExec => "fresh exec",
            Self::Namespaces => "namespaces",
            Self::CgroupNamespace => "cgroup namespace",
            Self::NoNestedNamespaces => "no nested user namespaces",
            Self::EmptyRoot => "empty root",
            Self::NoPrivileges => "no privileges",
            Self::Mdwe => "write xor execute",
            Self::Landlock => "Landlock",
            Self::LandlockScopes => "Landlock scopes",
            Self::Seccomp => "seccomp",
            Self::Rlimits => "resource limits",
        }
    }
}

/// The layers in force, one bit per [`Layer`] (bit number = the layer's number).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Layers(pub u32);

impl Layers {
    /// Adds a layer.
    pub fn add(&mut self, layer: Layer) {
        self.0 |= 1 << layer as u8;
    }

    /// Whether the layer is in force.
    pub fn has(self, layer: Layer) -> bool {
        self.0 & (1 << layer as u8) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_step_errno_and_setting() {
        let text = StepError { step: JailStep::UserNamespace, errno: libc::EPERM }.to_string();
        assert!(text.contains("user namespace") && text.contains("not permitted"), "{text}");
        assert!(text.contains("kernel.apparmor_restrict_unprivileged_userns"), "{text}");
        assert!(text.contains("--sandbox no-userns"), "{text}");
    }

    #[test]
    fn the_setting_that_refuses_user_namespaces_is_named() {
        let host = |apparmor: &'static str, clone: &'static str| {
            Refusal::from_settings(move |setting| {
                let value = if setting.starts_with("apparmor") { apparmor } else { clone };
                (!value.is_empty()).then(|| format!("{value}\n"))
            })
        };
        for (apparmor, clone, expected) in [
            ("1", "1", Refusal::AppArmor),
            ("0", "0", Refusal::Clone),
            ("", "0", Refusal::Clone),
            ("0", "1", Refusal::Unknown),
            ("", "", Refusal::Unknown),
        ] {
            assert_eq!(host(apparmor, clone), expected, "{apparmor} {clone}");
        }
        let text = Refusal::AppArmor.knob().expect("it has one");
        assert!(
            text.contains("systemd/apparmor.d/vm-system") && text.contains("apparmor_parser -r"),
            "{text}"
        );
        for (refusal, setting) in [
            (Refusal::AppArmor, "sysctl kernel.apparmor_restrict_unprivileged_userns=0"),
            (Refusal::Clone, "sysctl kernel.unprivileged_userns_clone=1"),
        ] {
            let text = refusal.knob().expect("it has one");
            for way in [setting, "a daemon that root starts", "--sandbox no-userns"] {
                assert!(text.contains(way), "{refusal:?}: {text}");
            }
        }
    }

    #[test]
    fn step_numbers_are_unique_and_map_back_to_their_steps() {
        for step in JailStep::ALL {
            assert_eq!(JailStep::from_number(step as u8), Some(step));
        }
        assert_eq!(JailStep::from_number(0), None);
    }
}
