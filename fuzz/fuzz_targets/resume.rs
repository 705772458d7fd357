//! libFuzzer's way into `fuzz_targets::resume`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::resume::run(bytes));
