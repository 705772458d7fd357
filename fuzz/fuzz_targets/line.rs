//! libFuzzer's way into `fuzz_targets::line`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::line::run(bytes));
