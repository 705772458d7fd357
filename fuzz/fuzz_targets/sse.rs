//! libFuzzer's way into `fuzz_targets::sse`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::sse::run(bytes));
