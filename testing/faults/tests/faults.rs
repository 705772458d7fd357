//! Every row of the fault table as a test of its own.
//!
//! However many tests run at a time, `FAULTS_LANES` says how many checks do, and checks that need the machine have it to
//! themselves.

use std::path::PathBuf;

use faults::{Options, run, table};

fn run_row(name: &str) {
    let options = Options::new(PathBuf::from(env!("CARGO_BIN_EXE_faults")));
    println!("seed {}", options.seed);
    let row = table().iter().find(|row| row.name == name).expect("a row of that name");
    let reports = run(&[row], &options, |report| println!("{}", report.line()));
    let failures: Vec<String> = reports.into_iter().filter_map(|report| report.failure).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

macro_rules! rows {
    ($($name:ident)*) => {
        const TESTED: &[&str] = &[$(stringify!($name)),*];
        $(
            #[test]
            fn $name() {
                run_row(stringify!($name));
            }
        )*
    };
}

rows! {
    input_closes_with_long_calls
    input_closes_behind_a_burst
    output_reader_goes_away
    bad_lines_between_calls
    extreme_calls
    handshake
    cancellation
    duplicate_id
    waiting_on_the_client
    answers_to_nothing
    unread_blobs
    unread_flood
    panic
    blocked_threads
    blocked_workers
    child_reads_stdin
    unread_stderr
    print
    ten_thousand_sleepers
    signals
    http_garbage
    http_extreme_calls
    http_header_smuggling
    http_host_and_origin
    http_hang_ups
    http_cancellation
    http_duplicate_id
    http_panic
    http_blocked
    http_sessions
    http_unread_streams
    http_last_event_id
    http_ten_thousand_sleepers
    http_signals
    client_opening
    client_server_dies
    client_server_hangs
    client_bad_answers
    client_server_closes_stdout
    client_server_never_reads
    client_server_floods_stderr
    client_server_forks
    client_comes_back
    client_http_server_dies
    client_http_server_hangs
    client_http_bad_answers
    client_http_stream_cut
    client_http_redirects
    client_http_endless_401
    client_http_sse
}

#[test]
fn every_row_has_a_test() {
    let rows: Vec<&str> = table().iter().map(|row| row.name).collect();
    assert_eq!(rows, TESTED);
}
