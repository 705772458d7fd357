//! libFuzzer's way into `fuzz_targets::connection`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::connection::run(bytes));
