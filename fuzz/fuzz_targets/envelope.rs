//! libFuzzer's way into `fuzz_targets::envelope`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::envelope::run(bytes));
