//! Sockets, devices and the kernel's interfaces for programs with rights.

use super::ProbeArgument::{Bytes, Number, Text, Zeros};
use super::{EscapeAttempt, EscapeProbe, Evidence, Inside, Outside, acts, attempt, judged, refused, run};

const NONE: super::ProbeArgument = Number(u64::MAX);
const NOTHING: super::ProbeArgument = Number(0);
const CHANNEL: super::ProbeArgument = Number(3);
const STREAM: super::ProbeArgument = Number(libc::SOCK_STREAM as u64);
const DATAGRAM: super::ProbeArgument = Number(libc::SOCK_DGRAM as u64);

/// The address of an abstract socket, and of one at a path.
const ABSTRACT: super::ProbeArgument = Bytes(b"\x01\x00\x00bus");
const PATH: super::ProbeArgument = Bytes(b"\x01\x00/run/systemd/notify\0");

const fn socket(name: &'static str, arguments: &'static [super::ProbeArgument]) -> EscapeProbe {
    refused(name, libc::SYS_socket, arguments)
}

pub(super) const ROWS: &[EscapeAttempt] = &[
    attempt(
        16,
        "uses sockets",
        &[
            socket("a network socket", &[Number(libc::AF_INET as u64), STREAM, NOTHING]),
            socket("a network socket, version 6", &[Number(libc::AF_INET6 as u64), STREAM, NOTHING]),
            socket("a local socket", &[Number(libc::AF_UNIX as u64), DATAGRAM, NOTHING]),
            socket("a netlink socket", &[Number(libc::AF_NETLINK as u64), DATAGRAM, NOTHING]),
            judged("a packet socket", libc::SYS_socket, &[Number(libc::AF_PACKET as u64), DATAGRAM, NOTHING]),
            judged("a host's socket", libc::SYS_socket, &[Number(libc::AF_VSOCK as u64), STREAM, NOTHING]),
            judged("a cipher's socket", libc::SYS_socket, &[Number(libc::AF_ALG as u64), STREAM, NOTHING]),
            refused(
                "a pair of sockets",
                libc::SYS_socketpair,
                &[Number(libc::AF_UNIX as u64), STREAM, NOTHING, Zeros],
            ),
            judged("bind", libc::SYS_bind, &[CHANNEL, ABSTRACT, Number(6)]),
            judged("listen", libc::SYS_listen, &[CHANNEL, Number(1)]),
            judged("accept4", libc::SYS_accept4, &[CHANNEL, NOTHING, NOTHING, NOTHING]),
            judged("setsockopt", libc::SYS_setsockopt, &[CHANNEL, Number(1), Number(16), Zeros, Number(4)]),
            refused(
                "sendto",
                libc::SYS_sendto,
                &[CHANNEL, Bytes(b"x"), Number(1), NOTHING, NOTHING, NOTHING],
            ),
        ],
        &[Evidence::Test("tests/tests/system/escape.rs", "worker_inherits_nothing_of_its_supervisor")],
    ),
    attempt(
        17,
        "connects to services of the host",
        &[
            judged("an abstract address", libc::SYS_connect, &[CHANNEL, ABSTRACT, Number(6)]),
            judged("a path", libc::SYS_connect, &[CHANNEL, PATH, Number(22)]),
            run(
                "NOTIFY_SOCKET of its environment",
                acts::environment,
                Inside::Reports("0 variables"),
                Outside::Succeeds,
            ),
        ],
        &[],
    ),
    attempt(
        22,
        "controls devices",
        &[
            judged("types into a terminal", libc::SYS_ioctl, &[NOTHING, Number(libc::TIOCSTI), Zeros]),
            judged("pastes into a console", libc::SYS_ioctl, &[NOTHING, Number(libc::TIOCLINUX), Zeros]),
            refused("any other ioctl", libc::SYS_ioctl, &[CHANNEL, Number(libc::FIONREAD), Zeros]),
        ],
        &[],
    ),
    attempt(
        23,
        "uses io_uring",
        &[
            judged("setup", libc::SYS_io_uring_setup, &[Number(1), Zeros]),
            judged("enter", libc::SYS_io_uring_enter, &[CHANNEL, NOTHING, NOTHING, NOTHING]),
            judged("register", libc::SYS_io_uring_register, &[CHANNEL, NOTHING, NOTHING, NOTHING]),
        ],
        &[],
    ),
    attempt(
        24,
        "loads code into the kernel",
        &[
            judged("bpf", libc::SYS_bpf, &[NOTHING, Zeros, Number(64)]),
            judged("perf_event_open", libc::SYS_perf_event_open, &[Zeros, NOTHING, NONE, NONE, NOTHING]),
            judged("userfaultfd", libc::SYS_userfaultfd, &[Number(1)]),
            judged("kexec_load", libc::SYS_kexec_load, &[NOTHING, NOTHING, NOTHING, NOTHING]),
            judged("init_module", libc::SYS_init_module, &[Zeros, NOTHING, Text(c"")]),
            judged("finit_module", libc::SYS_finit_module, &[CHANNEL, Text(c""), NOTHING]),
            judged("delete_module", libc::SYS_delete_module, &[Text(c"nothing"), NOTHING]),
        ],
        &[],
    ),
    attempt(
        25,
        "uses the kernel's keys",
        &[
            judged("keyctl", libc::SYS_keyctl, &[NOTHING, Number(-3_i64 as u64), NOTHING]),
            judged(
                "add_key",
                libc::SYS_add_key,
                &[Text(c"user"), Text(c"x"), Bytes(b"x"), Number(1), Number(-2_i64 as u64)],
            ),
            judged(
                "request_key",
                libc::SYS_request_key,
                &[Text(c"user"), Text(c"nothing"), NOTHING, NOTHING],
            ),
        ],
        &[],
    ),
    attempt(
        26,
        "shares memory, queues or semaphores",
        &[
            refused("shmget", libc::SYS_shmget, &[NOTHING, Number(4_096), Number(0o1600)]),
            judged("shmat", libc::SYS_shmat, &[NOTHING, NOTHING, NOTHING]),
            refused("semget", libc::SYS_semget, &[NOTHING, Number(1), Number(0o1600)]),
            refused("msgget", libc::SYS_msgget, &[NOTHING, Number(0o1600)]),
            refused(
                "mq_open",
                libc::SYS_mq_open,
                &[Text(c"x"), Number((libc::O_CREAT | libc::O_RDWR) as u64), Number(0o600), NOTHING],
            ),
            refused("memfd_create", libc::SYS_memfd_create, &[Text(c"x"), NOTHING]),
        ],
        &[],
    ),
    attempt(
        39,
        "locks or reserves memory of the host",
        &[
            judged("mlock", libc::SYS_mlock, &[Zeros, Number(4_096)]),
            judged("mlockall", libc::SYS_mlockall, &[Number(1)]),
            judged(
                "locked pages",
                libc::SYS_mmap,
                &[NOTHING, Number(4_096), Number(3), Number(0x22 | libc::MAP_LOCKED as u64), NONE, NOTHING],
            ),
            judged(
                "huge pages",
                libc::SYS_mmap,
                &[
                    NOTHING,
                    Number(1 << 21),
                    Number(3),
                    Number(0x22 | libc::MAP_HUGETLB as u64),
                    NONE,
                    NOTHING,
                ],
            ),
        ],
        &[],
    ),
    attempt(
        46,
        "measures what others compute",
        &[],
        &[Evidence::Document("docs/threat-model.md", "Timing side channels")],
    ),
];
