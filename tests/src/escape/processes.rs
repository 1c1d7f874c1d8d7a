//! Other processes, its own rights and limits, its end.

use super::ProbeArgument::{Arguments, Bytes, Number, Text, Zeros};
use super::{EscapeAttempt, Evidence, Inside, Outside, acts, attempt, judged, refused, run};
use nix::errno::Errno;

const CWD: super::ProbeArgument = Number(libc::AT_FDCWD as u64);
const NONE: super::ProbeArgument = Number(u64::MAX);
const NOTHING: super::ProbeArgument = Number(0);
const FIRST: super::ProbeArgument = Number(1);

const SPAWN: &str = "tests/tests/spawn/cases.rs";
const EXITS: &str = "tests/tests/system/process_exits.rs";
const SCRIPTS: &str = "tests/tests/system/hostile_scripts.rs";
const OURS: &str = "tests/tests/system/escape.rs";

pub(super) const ROWS: &[EscapeAttempt] = &[
    attempt(
        1,
        "executes another program",
        &[
            refused(
                "execve of its own program",
                libc::SYS_execve,
                &[Text(c"/proc/self/exe"), Arguments, NOTHING],
            ),
            refused(
                "execveat of its own program",
                libc::SYS_execveat,
                &[CWD, Text(c"/proc/self/exe"), Arguments, NOTHING, NOTHING],
            ),
            judged(
                "execveat of a descriptor",
                libc::SYS_execveat,
                &[Number(3), Text(c""), Arguments, NOTHING, Number(libc::AT_EMPTY_PATH as u64)],
            ),
            refused("a file in memory", libc::SYS_memfd_create, &[Text(c"x"), NOTHING]),
        ],
        &[],
    ),
    attempt(
        2,
        "creates a process or thread",
        &[
            #[cfg(target_arch = "x86_64")]
            run("fork", acts::fork, Inside::ForbiddenCall("fork"), Outside::Succeeds),
            #[cfg(target_arch = "x86_64")]
            run("vfork", acts::vfork, Inside::ForbiddenCall("vfork"), Outside::Succeeds),
            #[cfg(target_arch = "x86_64")]
            run("clone of a child", acts::clone_child, Inside::ForbiddenCall("clone"), Outside::Succeeds),
            #[cfg(target_arch = "x86_64")]
            run("clone of a thread", acts::clone_thread, Inside::ForbiddenCall("clone"), Outside::Succeeds),
            #[cfg(target_arch = "x86_64")]
            run(
                "clone that no tracer follows",
                acts::clone_untraced,
                Inside::ForbiddenCall("clone"),
                Outside::Succeeds,
            ),
            run(
                "the fork of a sibling without an order",
                acts::unordered_fork,
                Inside::Ends("protocol_violation(tried to create a process)"),
                Outside::Succeeds,
            ),
            super::EscapeProbe {
                name: "clone3",
                act: super::ProbeAct::Call(libc::SYS_clone3, &[Zeros, FIRST]),
                inside: Inside::Fails(Errno::ENOSYS),
                outside: Outside::IsJudged,
            },
        ],
        &[Evidence::Test(SPAWN, "an_unordered_fork_is_refused_and_reported")],
    ),
    attempt(
        3,
        "multiplies by forks",
        &[],
        &[
            Evidence::Test(SPAWN, "a_flood_of_forks_ends_the_worker"),
            Evidence::Test("tests/tests/system/forks/abuse.rs", "every_abuse_ends_that_session_only"),
        ],
    ),
    attempt(
        4,
        "occupies the supervisor with refused forks",
        &[],
        &[Evidence::Test(SPAWN, "a_flood_of_forks_ends_the_worker")],
    ),
    attempt(
        11,
        "enters other namespaces",
        &[
            refused("a user namespace", libc::SYS_unshare, &[Number(libc::CLONE_NEWUSER as u64)]),
            refused("a mount namespace", libc::SYS_unshare, &[Number(libc::CLONE_NEWNS as u64)]),
            refused("a network namespace", libc::SYS_unshare, &[Number(libc::CLONE_NEWNET as u64)]),
            refused("a cgroup namespace", libc::SYS_unshare, &[Number(libc::CLONE_NEWCGROUP as u64)]),
            judged("setns", libc::SYS_setns, &[Number(3), NOTHING]),
            #[cfg(target_arch = "x86_64")]
            run(
                "clone into a user namespace",
                acts::clone_user_namespace,
                Inside::ForbiddenCall("clone"),
                Outside::Succeeds,
            ),
        ],
        // Without the filter: the layers below it.
        &[Evidence::Test("sandbox/tests/policy/main.rs", "the_jail_refuses_everything_the_self_test_tries")],
    ),
    attempt(
        12,
        "traces processes",
        &[
            refused("to be traced by its parent", libc::SYS_ptrace, &[Number(libc::PTRACE_TRACEME as u64)]),
            judged("attaches to all", libc::SYS_ptrace, &[Number(libc::PTRACE_ATTACH as u64), NONE]),
            judged("seizes pid 1", libc::SYS_ptrace, &[Number(libc::PTRACE_SEIZE as u64), FIRST]),
        ],
        &[],
    ),
    attempt(
        13,
        "reads other processes",
        &[
            refused("process_vm_readv", libc::SYS_process_vm_readv, &[FIRST, Zeros, NOTHING, Zeros, NOTHING]),
            refused(
                "process_vm_writev",
                libc::SYS_process_vm_writev,
                &[FIRST, Zeros, NOTHING, Zeros, NOTHING],
            ),
            judged("process_madvise", libc::SYS_process_madvise, &[Number(3), Zeros, NOTHING]),
            judged("kcmp", libc::SYS_kcmp, &[FIRST, FIRST]),
            refused("a pidfd", libc::SYS_pidfd_open, &[FIRST, NOTHING]),
            judged("a descriptor of another process", libc::SYS_pidfd_getfd, &[Number(3), NOTHING, NOTHING]),
        ],
        &[],
    ),
    attempt(
        14,
        "sends signals",
        &[
            refused("kill of pid 1", libc::SYS_kill, &[FIRST, NOTHING]),
            judged("kill of all", libc::SYS_kill, &[NONE, NOTHING]),
            refused("tkill", libc::SYS_tkill, &[FIRST, NOTHING]),
            refused("tgkill", libc::SYS_tgkill, &[FIRST, FIRST, NOTHING]),
            judged("pidfd_send_signal", libc::SYS_pidfd_send_signal, &[Number(3), NOTHING]),
            judged("rt_sigqueueinfo", libc::SYS_rt_sigqueueinfo, &[FIRST, NOTHING, Zeros]),
            judged("rt_tgsigqueueinfo", libc::SYS_rt_tgsigqueueinfo, &[FIRST, FIRST, NOTHING, Zeros]),
        ],
        &[],
    ),
    attempt(
        15,
        "has the kernel send signals",
        &[
            refused("owner of a socket", libc::SYS_fcntl, &[Number(3), Number(libc::F_SETOWN as u64), FIRST]),
            refused("signal of a socket", libc::SYS_fcntl, &[Number(3), Number(10), Number(9)]),
            refused(
                "notifications of a socket",
                libc::SYS_fcntl,
                &[Number(3), Number(libc::F_SETFL as u64), Number((libc::O_ASYNC | libc::O_NONBLOCK) as u64)],
            ),
            refused(
                "at the end of its parent",
                libc::SYS_prctl,
                &[Number(libc::PR_SET_PDEATHSIG as u64), Number(9)],
            ),
            refused("by a timer", libc::SYS_timer_create, &[FIRST, NOTHING, Zeros]),
        ],
        &[],
    ),
    attempt(
        29,
        "changes its process's settings",
        &[
            refused("dumpable", libc::SYS_prctl, &[Number(libc::PR_SET_DUMPABLE as u64), FIRST]),
            judged("new privileges", libc::SYS_prctl, &[Number(libc::PR_SET_NO_NEW_PRIVS as u64), NOTHING]),
            refused("keeps capabilities", libc::SYS_prctl, &[Number(libc::PR_SET_KEEPCAPS as u64), FIRST]),
            judged("write and execute", libc::SYS_prctl, &[Number(65), NOTHING]),
            judged("the clock register", libc::SYS_prctl, &[Number(libc::PR_SET_TSC as u64), FIRST]),
            refused("its name", libc::SYS_prctl, &[Number(libc::PR_SET_NAME as u64), Text(c"supervisor")]),
            judged("its memory's description", libc::SYS_prctl, &[Number(libc::PR_SET_MM as u64), NONE]),
            judged("its tracer", libc::SYS_prctl, &[Number(libc::PR_SET_PTRACER as u64), NONE]),
            refused(
                "parent of orphans",
                libc::SYS_prctl,
                &[Number(libc::PR_SET_CHILD_SUBREAPER as u64), FIRST],
            ),
            #[cfg(target_arch = "x86_64")]
            refused("arch_prctl", libc::SYS_arch_prctl, &[Number(0x1003), Zeros]),
        ],
        &[],
    ),
    attempt(
        30,
        "becomes another user, or privileged",
        &[
            refused("setuid", libc::SYS_setuid, &[NOTHING]),
            refused("setgid", libc::SYS_setgid, &[NOTHING]),
            judged("setgroups", libc::SYS_setgroups, &[NOTHING, NOTHING]),
            refused("setresuid", libc::SYS_setresuid, &[NOTHING, NOTHING, NOTHING]),
            refused("setfsuid", libc::SYS_setfsuid, &[NOTHING]),
            judged("capset", libc::SYS_capset, &[Zeros, Zeros]),
            judged("securebits", libc::SYS_prctl, &[Number(libc::PR_SET_SECUREBITS as u64), NOTHING]),
        ],
        &[Evidence::Test(SPAWN, "worker_starts_behind_all_walls")],
    ),
    attempt(
        31,
        "changes limits",
        &[
            #[cfg(target_arch = "x86_64")]
            refused("setrlimit", libc::SYS_setrlimit, &[Number(libc::RLIMIT_CORE as u64), Zeros]),
            refused(
                "prlimit64 of its own",
                libc::SYS_prlimit64,
                &[NOTHING, Number(libc::RLIMIT_CORE as u64), NOTHING, Zeros],
            ),
            judged(
                "prlimit64 of pid 1",
                libc::SYS_prlimit64,
                &[FIRST, Number(libc::RLIMIT_CORE as u64), Zeros, NOTHING],
            ),
        ],
        &[],
    ),
    attempt(
        32,
        "gets more of the processor",
        &[
            judged(
                "real time",
                libc::SYS_sched_setscheduler,
                &[NOTHING, Number(libc::SCHED_FIFO as u64), Zeros],
            ),
            judged("scheduler attributes", libc::SYS_sched_setattr, &[NOTHING, Zeros, NOTHING]),
            judged("priority", libc::SYS_setpriority, &[NOTHING, NOTHING, Number(-20_i64 as u64)]),
            judged(
                "priority of its input and output",
                libc::SYS_ioprio_set,
                &[FIRST, NOTHING, Number(1 << 13)],
            ),
            refused("processors", libc::SYS_sched_setaffinity, &[NOTHING, Number(8), Bytes(&[0xff; 8])]),
            refused("sched_yield", libc::SYS_sched_yield, &[]),
        ],
        &[],
    ),
    attempt(
        33,
        "exhausts timers and their signals",
        &[
            refused("an interval timer", libc::SYS_setitimer, &[NOTHING, Zeros, NOTHING]),
            refused("a timer", libc::SYS_timer_create, &[FIRST, NOTHING, Zeros]),
            refused("a timer's descriptor", libc::SYS_timerfd_create, &[FIRST, NOTHING]),
            refused("an event's descriptor", libc::SYS_eventfd2, &[NOTHING, NOTHING]),
            refused("epoll", libc::SYS_epoll_create1, &[NOTHING]),
            refused("a descriptor of signals", libc::SYS_signalfd4, &[NONE, Zeros, Number(8), NOTHING]),
            #[cfg(target_arch = "x86_64")]
            refused("an alarm", libc::SYS_alarm, &[NOTHING]),
        ],
        &[],
    ),
    attempt(
        34,
        "ignores its end",
        &[
            refused("blocks signals", libc::SYS_rt_sigprocmask, &[NOTHING, Zeros, NOTHING, Number(8)]),
            refused("handles signals", libc::SYS_rt_sigaction, &[Number(15), NOTHING, Zeros, Number(8)]),
            judged("another signal stack", libc::SYS_sigaltstack, &[Zeros, NOTHING]),
        ],
        &[
            Evidence::Test(
                "tests/tests/system/hostile_worker.rs",
                "a_worker_that_ignores_the_interruption_is_killed",
            ),
            Evidence::Test(SCRIPTS, "natives_that_never_poll_are_killed_at_the_wall_limit"),
            Evidence::Test(SCRIPTS, "endless_code_ends_at_its_cpu_limit_and_the_session_continues"),
        ],
    ),
    attempt(
        35,
        "stops itself",
        &[
            refused("waits for a signal", libc::SYS_nanosleep, &[Zeros, NOTHING]),
            judged("takes a signal", libc::SYS_rt_sigtimedwait, &[Zeros, NOTHING, Zeros, Number(8)]),
        ],
        &[Evidence::Test(EXITS, "a_stopped_worker_is_killed_at_the_wall_limit")],
    ),
    attempt(
        36,
        "computes for ever",
        &[],
        &[
            Evidence::Test(SCRIPTS, "natives_that_never_poll_are_killed_at_the_cpu_limit"),
            Evidence::Test(SPAWN, "memory_and_cpu_time_have_a_hard_stop"),
        ],
    ),
    attempt(
        43,
        "uses what it has inherited",
        &[run("the environment", acts::environment, Inside::Reports("0 variables"), Outside::Succeeds)],
        &[Evidence::Test(OURS, "worker_inherits_nothing_of_its_supervisor")],
    ),
    attempt(
        45,
        "guesses addresses of another jail",
        &[],
        &[
            Evidence::Test(OURS, "each_keeper_has_other_addresses"),
            Evidence::Document(
                "docs/threat-model.md",
                "Address-space layout is shared by all workers of one zygote",
            ),
        ],
    ),
    attempt(
        62,
        "confuses or kills the keeper",
        &[],
        &[
            Evidence::Test(OURS, "every_attempt_fails"),
            Evidence::Test(EXITS, "a_killed_keeper_ends_its_sessions_and_a_new_one_takes_over"),
        ],
    ),
    attempt(
        63,
        "feigns another end",
        &[
            run("exit code 0", acts::exit_0, Inside::Ends("exited(0)"), Outside::EndsToo),
            run("that of a SIGKILL", acts::exit_137, Inside::Ends("exited(137)"), Outside::EndsToo),
            run("that of a filter", acts::exit_159, Inside::Ends("exited(159)"), Outside::EndsToo),
        ],
        &[Evidence::Test("tests/tests/system/hostile_worker.rs", "a_worker_that_exits_is_no_success")],
    ),
    attempt(
        64,
        "crashes at every start",
        &[],
        &[Evidence::Test(
            "tests/tests/system/hostile_worker.rs",
            "workers_that_die_at_every_start_are_not_started_for_ever",
        )],
    ),
    attempt(
        65,
        "enters the kernel in another way",
        &[
            #[cfg(target_arch = "x86_64")]
            run(
                "the 32-bit entry",
                acts::call_by_interrupt,
                Inside::Ends("seccomp(unknown)"),
                Outside::Succeeds,
            ),
            #[cfg(target_arch = "x86_64")]
            super::EscapeProbe {
                name: "a number of x32",
                act: super::ProbeAct::Call(libc::SYS_getpid | 0x4000_0000, &[]),
                inside: Inside::Ends("seccomp(unknown)"),
                outside: Outside::Succeeds,
            },
        ],
        &[],
    ),
    attempt(
        66,
        "weakens its filter",
        &[
            refused("another filter", libc::SYS_seccomp, &[Number(3), NOTHING, Zeros]),
            refused("the state of the filter", libc::SYS_prctl, &[Number(21)]),
        ],
        &[],
    ),
    attempt(
        67,
        "outlives a supervisor that exits",
        &[],
        &[
            Evidence::Test(EXITS, "nothing_is_left_when_the_supervisor_is_killed_and_not_restarted"),
            Evidence::Later("a supervisor does not adopt the jail of an earlier one yet"),
        ],
    ),
    attempt(
        68,
        "outlives the service",
        &[],
        &[
            Evidence::Test(SPAWN, "shutdown_leaves_no_process"),
            Evidence::Later("sessions that outlive their supervisor come with adoption"),
        ],
    ),
    attempt(
        69,
        "starts where the host is short of something, with fewer walls",
        &[],
        &[
            Evidence::Test(SPAWN, "a_host_without_user_namespaces_is_named_with_its_knob"),
            Evidence::Test(
                "tests/tests/descriptors.rs",
                "all_descriptors_are_used_and_their_shortage_is_reported_as_such",
            ),
            Evidence::Test(
                "tests/tests/runtime/store_faults.rs",
                "a_session_that_cannot_be_stored_is_not_created",
            ),
        ],
    ),
    attempt(
        70,
        "has a successor of its pid killed",
        &[],
        &[Evidence::Test(SPAWN, "exit_is_reported_as_the_kernel_reported_it")],
    ),
];
