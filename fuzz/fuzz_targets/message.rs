//! libFuzzer's way into `fuzz_targets::message`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::message::run(bytes));
