//! libFuzzer's way into `fuzz_targets::http_headers`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::http_headers::run(bytes));
