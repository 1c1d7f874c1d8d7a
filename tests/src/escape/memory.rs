//! The worker's own memory: executable pages, limits, crashes, and secrets of others.

use super::ProbeArgument::{Number, Zeros};
use super::{EscapeAttempt, Evidence, Inside, Outside, acts, attempt, judged, refused, run};
use nix::errno::Errno;

const NONE: super::ProbeArgument = Number(u64::MAX);
const NOTHING: super::ProbeArgument = Number(0);
const PAGE: super::ProbeArgument = Number(4_096);
const EXECUTE: super::ProbeArgument = Number((libc::PROT_READ | libc::PROT_EXEC) as u64);
const OWN: super::ProbeArgument = Number((libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64);
const SHARED: super::ProbeArgument = Number((libc::MAP_SHARED | libc::MAP_ANONYMOUS) as u64);

const SCRIPTS: &str = "tests/tests/system/hostile_scripts.rs";
const OURS: &str = "tests/tests/system/escape.rs";

pub(super) const ROWS: &[EscapeAttempt] = &[
    attempt(
        27,
        "makes memory executable",
        &[
            refused("mmap", libc::SYS_mmap, &[NOTHING, PAGE, EXECUTE, OWN, NONE, NOTHING]),
            judged("mprotect", libc::SYS_mprotect, &[Zeros, PAGE, EXECUTE]),
            judged("pkey_mprotect", libc::SYS_pkey_mprotect, &[Zeros, PAGE, EXECUTE, NONE]),
            refused("personality", libc::SYS_personality, &[Number(0x0040_0000)]),
            refused("shared memory", libc::SYS_mmap, &[NOTHING, PAGE, Number(3), SHARED, NONE, NOTHING]),
        ],
        &[],
    ),
    attempt(
        28,
        "damages its own address space",
        &[
            run("maps address 0", acts::map_address_0, Inside::Fails(Errno::EPERM), Outside::IsJudged),
            run("unmaps its stack", acts::unmap_own_stack, Inside::Ends("signal(SIGSEGV)"), Outside::EndsToo),
        ],
        &[],
    ),
    attempt(
        37,
        "uses more memory than it may",
        &[run("maps 64 GiB", acts::map_64_gib, Inside::Fails(Errno::ENOMEM), Outside::Succeeds)],
        &[
            Evidence::Test(SCRIPTS, "memory_bombs_end_at_the_memory_limit"),
            Evidence::Test("tests/tests/spawn/cases.rs", "memory_and_cpu_time_have_a_hard_stop"),
            Evidence::Test(
                "tests/tests/system/out_of_memory.rs",
                "worker_that_the_kernel_kills_for_lack_of_memory_has_that_reason",
            ),
        ],
    ),
    attempt(
        38,
        "overflows its stack",
        &[],
        &[
            Evidence::Test(SCRIPTS, "deep_recursion_is_a_range_error"),
            Evidence::Test("tests/tests/spawn/cases.rs", "exit_is_reported_as_the_kernel_reported_it"),
        ],
    ),
    attempt(
        40,
        "leaves a core file",
        &[run(
            "accesses memory that it does not have",
            acts::access_nothing,
            Inside::Ends("signal(SIGSEGV)"),
            Outside::EndsToo,
        )],
        &[Evidence::Test(OURS, "worker_inherits_nothing_of_its_supervisor")],
    ),
    attempt(
        44,
        "finds secrets of others in its memory",
        &[],
        &[Evidence::Test(OURS, "no_worker_has_text_of_another_session_or_of_the_supervisor")],
    ),
];
