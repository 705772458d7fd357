//! A client that starts its server as a child process, and ends it.
//!
//! Give it the command of any MCP server: `cargo run -p examples --bin client_of_a_child -- steadfast serve`. Without one
//! it starts itself as the server.

use steadfast::prelude::*;
use steadfast::transport::child::{Child, Command};
use steadfast::{Error, Outcome};

struct Itself;

/// The other half of this example.
#[server(name = "itself")]
impl Itself {
    /// Says hello, on standard error too.
    #[tool]
    async fn hello(&self) -> String {
        eprintln!("somebody is there");
        format!("hello from process {}", std::process::id())
    }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["--as-server"] {
        return Itself.serve_stdio().await;
    }
    let command = match arguments.split_first() {
        Some((program, rest)) => Command::new(program).args(rest),
        None => Command::new(std::env::current_exe().map_err(not_started)?).arg("--as-server"),
    };
    // Standard error goes to `tracing` unless told; here it is printed.
    let command = command.on_stderr_line(|line| println!("  its standard error: {line}"));
    let child = Child::spawn(command).map_err(not_started)?;
    let process = child.handle();
    let client = Client::connect(child).await?;

    println!("connected in revision {}", client.revision());
    for tool in client.list_tools().await? {
        println!("{}: {}", tool.name, tool.description.unwrap_or_default());
    }
    if let Ok(hello) = client.call_tool("hello", ()).await {
        println!("{}", hello.content.first().and_then(Content::as_text).unwrap_or_default());
    }

    // Closes its standard input, then SIGTERM, then SIGKILL to its whole group, if it comes to that. No zombie stays.
    client.close().await;
    let status = process.group_exit().await;
    println!("ended: {status:?}");
    Ok(())
}

fn not_started(error: std::io::Error) -> Error {
    Error::transport(Outcome::NotSent, error)
}
