//! Tests that measure the memory of their process.

/// Whether this test has the process to itself, as a test has to that measures its memory. If not, it is run in one that it
/// has, and judged by that.
pub(crate) fn alone(test: &str) -> bool {
    const ALONE: &str = "STEADFAST_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let program = std::env::current_exe().unwrap();
    let run =
        std::process::Command::new(program).args([test, "--exact", "--nocapture"]).env(ALONE, "1").output().unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&run.stderr));
    false
}

pub(crate) fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}
