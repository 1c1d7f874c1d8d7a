//! The channel to the supervisor: descriptors, floods, lies.

use super::ProbeArgument::{Bytes, Number, Zeros};
use super::{EscapeAttempt, Evidence, Inside, Outside, acts, attempt, judged, refused, run};
use nix::errno::Errno;

const NOTHING: super::ProbeArgument = Number(0);
const CHANNEL: super::ProbeArgument = Number(3);
const PEER: super::ProbeArgument = Number(4);

const HOSTILE: &str = "tests/tests/system/hostile_worker.rs";
const SPAWN: &str = "tests/tests/spawn/cases.rs";
const CORE: &str = "supervisor/core/src/tests/violations.rs";

pub(super) const ROWS: &[EscapeAttempt] = &[
    attempt(
        18,
        "sends descriptors to the supervisor",
        &[],
        &[
            Evidence::Test(SPAWN, "descriptors_cannot_be_sent"),
            Evidence::Test(HOSTILE, "descriptors_never_reach_the_supervisor"),
        ],
    ),
    attempt(
        19,
        "forges its identity",
        &[run(
            "credentials of pid 1",
            acts::forged_credentials,
            Inside::Fails(Errno::EPERM),
            Outside::Succeeds,
        )],
        &[],
    ),
    attempt(
        20,
        "guesses descriptors",
        &[
            run("which are open", acts::open_descriptors, Inside::Reports("0 1 2 3"), Outside::Succeeds),
            run(
                "sends on 4095 others",
                acts::send_on_all_others,
                Inside::Fails(Errno::EBADF),
                Outside::Succeeds,
            ),
            judged("read", libc::SYS_read, &[NOTHING, Zeros, NOTHING]),
            refused("write", libc::SYS_write, &[PEER, Bytes(b"x"), Number(1)]),
            refused("dup", libc::SYS_dup, &[CHANNEL]),
            refused("fstat", libc::SYS_fstat, &[CHANNEL, Zeros]),
        ],
        &[],
    ),
    attempt(
        21,
        "closes or replaces the channel",
        &[
            run("closes it", acts::close_channel, Inside::Ends("hung_up"), Outside::Succeeds),
            run("replaces it", acts::replace_channel, Inside::Ends("hung_up"), Outside::Succeeds),
            #[cfg(target_arch = "x86_64")]
            refused("dup2", libc::SYS_dup2, &[NOTHING, CHANNEL]),
            judged("dup3 to another number", libc::SYS_dup3, &[CHANNEL, Number(7), NOTHING]),
            refused("shutdown", libc::SYS_shutdown, &[CHANNEL, Number(2)]),
        ],
        &[],
    ),
    attempt(
        48,
        "floods its standard streams",
        &[refused("write", libc::SYS_write, &[Number(2), Bytes(b"x"), Number(1)])],
        &[],
    ),
    attempt(
        49,
        "floods the supervisor with messages",
        &[],
        &[
            Evidence::Test(HOSTILE, "floods_end_at_the_limits"),
            Evidence::Test(SPAWN, "a_worker_that_is_not_acknowledged_stops_producing"),
        ],
    ),
    attempt(
        50,
        "announces sizes beyond the limits",
        &[],
        &[
            Evidence::Test(HOSTILE, "\"a message above the cap\""),
            Evidence::Test(HOSTILE, "\"a packet above the cap\""),
        ],
    ),
    attempt(
        51,
        "sends what cannot be decoded",
        &[],
        &[
            Evidence::Test(HOSTILE, "\"a list of 2^60 entries\""),
            Evidence::Test(HOSTILE, "\"bytes behind the message\""),
            Evidence::Test(HOSTILE, "\"garbage\""),
            Evidence::Test("fuzz/fuzz_targets/session.rs", "from_worker"),
        ],
    ),
    attempt(
        52,
        "exits in the middle of a message",
        &[],
        &[Evidence::Test(HOSTILE, "messages_that_never_end_are_not_waited_for")],
    ),
    attempt(
        53,
        "sends a message slowly",
        &[],
        &[Evidence::Test(HOSTILE, "messages_that_never_end_are_not_waited_for")],
    ),
    attempt(
        54,
        "never reads",
        &[],
        &[Evidence::Test(SPAWN, "sending_to_a_worker_that_does_not_read_times_out")],
    ),
    attempt(
        55,
        "sends messages out of order",
        &[],
        &[
            Evidence::Test(HOSTILE, "\"started twice\""),
            Evidence::Test(HOSTILE, "\"an unrequested adoption\""),
            Evidence::Test(HOSTILE, "\"ends twice\""),
            Evidence::Test(HOSTILE, "\"a piece out of order\""),
            Evidence::Test(SPAWN, "worker_that_never_sends_hello_is_killed"),
            Evidence::Test(CORE, "a_message_before_started_is_a_violation"),
        ],
    ),
    attempt(
        56,
        "names executions of others",
        &[],
        &[
            Evidence::Test(HOSTILE, "\"events of an unknown execution\""),
            Evidence::Test(HOSTILE, "\"end of an unknown execution\""),
        ],
    ),
    attempt(
        57,
        "repeats or skips messages",
        &[],
        &[
            Evidence::Test(HOSTILE, "\"a skipped sequence\""),
            Evidence::Test(HOSTILE, "\"a repeated sequence\""),
        ],
    ),
    attempt(
        58,
        "lies about what it has used",
        &[],
        &[Evidence::Test(CORE, "numbers_and_texts_of_a_worker_are_capped_at_what_can_be_stored")],
    ),
    attempt(
        59,
        "makes host calls that nobody granted",
        &[],
        &[
            Evidence::Test(HOSTILE, "calls_without_a_grant_are_refused_whatever_the_worker_sends"),
            Evidence::Test("tests/tests/system/bad_requests.rs", "paths_never_leave_the_worktree"),
        ],
    ),
    attempt(
        60,
        "injects control characters into records",
        &[],
        &[Evidence::Test(
            "cli/tests/cli/terminal.rs",
            "control_characters_of_a_script_do_not_reach_a_terminal",
        )],
    ),
    attempt(
        61,
        "feigns progress",
        &[],
        // Nothing that a worker reports moves a deadline.
        &[Evidence::Test(HOSTILE, "a_worker_that_ignores_the_interruption_is_killed")],
    ),
];
