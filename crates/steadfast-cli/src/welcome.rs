//! The text printed when the server is started at a terminal.

use std::io::IsTerminal;

/// If standard input and standard error are a terminal: prints what the server is, a message to paste and how to add the server
/// to a client. Standard output carries the protocol, so the text goes to standard error.
pub(crate) fn print_at_terminal() {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return;
    }
    let program = std::env::current_exe().map_or_else(|_| "steadfast".to_owned(), |path| path.display().to_string());
    crate::output::eprint(&text(&program));
}

fn text(program: &str) -> String {
    let program_json = serde_json::Value::from(program);
    format!(
        r#"steadfast {version}: the reference MCP server, on standard input and output.

It expects JSON-RPC messages, one per line. To try it by hand, paste this line:

{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"add","arguments":{{"a":2,"b":3}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}

To add it to a client (Claude Desktop, Cursor and others), put this in its MCP configuration:

{{
  "mcpServers": {{
    "steadfast": {{ "command": {program_json}, "args": ["serve"] }}
  }}
}}

Ctrl-D closes the connection, Ctrl-C shuts the server down.

"#,
        version = env!("CARGO_PKG_VERSION"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_to_paste_are_json() {
        let text = text("C:\\tools\\steadfast");
        let line = text.lines().find(|line| line.starts_with("{\"jsonrpc\"")).unwrap();
        assert!(serde_json::from_str::<serde_json::Value>(line).is_ok());
        let start = text.find("{\n").unwrap();
        let end = text.find("\n}\n").unwrap() + 2;
        let snippet: serde_json::Value = serde_json::from_str(&text[start..end]).unwrap();
        assert_eq!(snippet["mcpServers"]["steadfast"]["command"], "C:\\tools\\steadfast");
    }
}
