//! What the measured servers have in common: how the bench learns where they listen, and how it ends them.
//!
//! None of it runs while they are measured.

use std::io::{self, Read, Write};
use std::net::SocketAddr;

/// The path of the endpoint.
pub const PATH: &str = "/mcp";

/// Tells the bench where the server listens.
pub fn announce(address: SocketAddr) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{address}")?;
    output.flush()
}

/// Ends the process when its input ends, at once and in the same way for all: how they drain is not measured here.
pub fn end_with_input() {
    std::thread::spawn(|| {
        // An input that cannot be read has ended too.
        let _ = io::stdin().lock().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
}
