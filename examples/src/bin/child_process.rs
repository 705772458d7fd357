//! A client that starts its server as a child process and stops it.
//!
//! Give it the command of any MCP server: `cargo run -p examples --bin child_process -- steadfast serve`. Without one
//! it starts itself as the server.

use steadfast::prelude::*;
use steadfast::transport::child::{Child, Command};
use steadfast::{Error, Outcome};

struct Example;

/// The other half of this example.
#[server(name = "example")]
impl Example {
    /// Returns a greeting, and writes a line to standard error.
    #[tool]
    async fn hello(&self) -> String {
        eprintln!("a client called hello");
        format!("hello from process {}", std::process::id())
    }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["--as-server"] {
        return Example.serve_stdio().await;
    }
    let command = match arguments.split_first() {
        Some((program, rest)) => Command::new(program).args(rest),
        None => Command::new(std::env::current_exe().map_err(not_started)?).arg("--as-server"),
    };
    // By default the standard error of the child is logged with `tracing`; here it is printed.
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

    // Closes its standard input, then sends SIGTERM and SIGKILL to its process group if necessary, and reaps the child.
    client.close().await;
    let status = process.group_exit().await;
    println!("ended: {status:?}");
    Ok(())
}

fn not_started(error: std::io::Error) -> Error {
    Error::transport(Outcome::NotSent, error)
}
