//! The bounds that the table states, each with its reason. Nothing else in this crate is a limit.

use std::time::Duration;

/// How long running handlers may go on once the peer's stream has ended: the default of the server.
pub const DRAIN_WINDOW: Duration = Duration::from_secs(1);

/// "Within the drain window plus 1 s": what the table asks of an ending.
pub const ENDING: Duration = Duration::from_secs(2);

/// The ending that a check accepts. Twice what the table asks, because the machines that run this are small, shared and
/// noisy; a server that waits for a handler of 30 s is still caught. The time that was seen is noted with the verdict.
pub const ENDING_ACCEPTED: Duration = Duration::from_secs(4);

/// "Without delay": an answer or a cleanup while handlers block for [`BLOCK_MS`]. Far above any honest delay, far
/// below the time for which the handlers block.
pub const PROMPT: Duration = Duration::from_secs(2);

/// For how long the blocking tools block when the check shows that no other request waits for them.
pub const BLOCK_MS: u64 = 30_000;

/// A call that never ends by itself within a check.
pub const LONG_MS: u64 = 60_000;

/// How long a check waits for something that must come. Only a failing check takes that long.
pub const CHECK_TIMEOUT: Duration = Duration::from_secs(30);

/// How often a race is run: the least that the table allows.
pub const RACES: usize = 500;

/// All rounds of one race together. A server that sits out its drain window at each end is caught here, not endured.
pub const RACE_BUDGET: Duration = Duration::from_secs(240);

/// The largest frame that the server takes by default.
pub const FRAME_LIMIT: usize = 16 * 1024 * 1024;

/// How many requests may be in flight by default.
pub const IN_FLIGHT_LIMIT: usize = 16_384;

/// Blob results that are due while the output is not read. 2,000 times 64 KiB are 125 MiB: a server that computes and holds them
/// all is past this bound, one that holds its 16 MiB of encoded responses, the same again as text on its way there, and an
/// allocator's slack is far below it.
pub const UNREAD_BLOBS_KIB: u64 = 64 * 1024;

/// A flood of unread output: 16 MiB of encoded responses, and at most 16,384 requests in flight with a task, their
/// arguments (1 KiB each) and a table entry: about 3 KiB each. Twice the sum of both.
pub const FLOOD_KIB: u64 = 128 * 1024;

/// "Flat": how much the last third of a flood may stand above what came before. A server that keeps every call of a flood
/// grows by hundreds of MiB in that time.
pub const FLOOD_GROWTH_KIB: u64 = 8 * 1024;

/// 10,000 sleeping calls: a task, a timer, a table entry and their arguments each. 4 KiB for each of them.
pub const SLEEPERS_KIB: u64 = 40 * 1024;

/// "Memory back": what may remain above the idle size after 10,000 calls were cancelled. Not zero, because an
/// allocator gives whole pages back, if at all, and keeps arenas for each thread; that what remains is used again, and
/// not lost, is what [`SLEEPERS_GROWTH_KIB`] shows.
pub const SLEEPERS_AFTER_KIB: u64 = 24 * 1024;

/// What five more rounds of 10,000 cancelled calls may add, in the best of five such windows: less than a forgotten 64 bytes for
/// each of them.
pub const SLEEPERS_GROWTH_KIB: u64 = 3 * 1024;

/// A line of 64 MiB where 16 MiB are allowed: the part that was read until the limit was noticed, doubled by the growth of
/// a buffer, and slack.
pub const LONG_LINE_KIB: u64 = 40 * 1024;

/// "Memory back": what 1,000 sessions on HTTP may need beyond the memory that 1,000 abandoned ones had, in the best of four
/// tries. Together they hold 8 MiB; 2 KiB of each that were lost would be seen.
pub const ABANDONED_GROWTH_KIB: u64 = 2 * 1024;

/// The deadline of calls and openings of a client that have to end before it: by then a check has long lost its patience.
pub const CLIENT_DEADLINE_MS: u64 = 60_000;

/// The deadline of calls that only their deadline ends. Short, because it is sat out; long enough for another call to be
/// made meanwhile, which no check depends on.
pub const CLIENT_SHORT_MS: u64 = 400;

/// How many descriptors and threads a client may hold more than after doing everything once: one more pooled connection,
/// a thread that is about to exit. Checks open many more connections than that, and each that leaks would show.
pub const CLIENT_SPARE: usize = 3;

/// How much a client may grow in all of a check: pages that its allocator holds for its threads, and for what was large once.
/// Less than what is lost if the two rounds of large calls were never freed.
pub const CLIENT_GROWTH_KIB: u64 = 48 * 1024;

/// What a client may hold while megabytes come that it does not want: one message of the longest kind, doubled by the growth of
/// a buffer, and slack.
pub const CLIENT_PEAK_KIB: u64 = 64 * 1024;

/// 64 calls of 512 KiB that cannot be written: what they are made of, once as arguments and once as text, the same again on the
/// way from one to the other, and slack.
pub const CLIENT_DEAF_KIB: u64 = 160 * 1024;

/// 10,000 calls in flight on 100 connections of HTTP/2: a stream, a task, an exchange with its engine and its timer, the
/// arguments. 20 KiB for each of them.
pub const HTTP_SLEEPERS_KIB: u64 = 200 * 1024;

/// What two more rounds of them may add, in the best of four such windows: less than a forgotten KiB for each call.
pub const HTTP_SLEEPERS_GROWTH_KIB: u64 = 20 * 1024;
