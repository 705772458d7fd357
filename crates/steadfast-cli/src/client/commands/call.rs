//! `steadfast call`: calls a tool and prints its result.

use clap::Args;
use steadfast::model::Tool;
use steadfast::{CallToolResult, Client, Error, ErrorKind, JsonObject, model::code};

use crate::client::arguments::{CliToolArgumentOptions, ParsedToolArguments};
use crate::client::connection::session;
use crate::client::connection::session::CliSessionEnd;
use crate::client::display::progress::ProgressDisplay;
use crate::client::display::server_log::ServerLogDisplayOptions;
use crate::client::display::{content, hints};
use crate::client::schema;
use crate::client::schema::AdditionalArguments;
use crate::client::{CliCommandFailure, CliConnectOptions, CliExitStatus, HINT_TIMEOUT, ServerCommand, exit};
use crate::output::eprint_line;

/// Calls a tool
#[derive(Args)]
#[command(
    after_help = exit::help("steadfast call './steadfast serve' add --arg a=1 --arg b=2"),
    override_usage = "steadfast call [OPTIONS] <TARGET> <TOOL>\n       steadfast call [OPTIONS] <TOOL> -- <COMMAND>..."
)]
pub(crate) struct CallArgs {
    #[command(flatten)]
    pub(crate) connect: CliConnectOptions,
    /// The name of the tool
    tool: Option<String>,
    #[command(flatten)]
    arguments: CliToolArgumentOptions,
    #[command(flatten)]
    server_log: ServerLogDisplayOptions,
    #[command(flatten)]
    server_command: ServerCommand,
}

pub(crate) async fn run(mut options: CallArgs) -> Result<CliExitStatus, CliCommandFailure> {
    let arguments = options.arguments.parse()?;
    let tool = options.connect.take_operand(options.tool.take(), &options.server_command, "the name of the tool")?;
    let timeout = options.connect.timeout();
    let bar = ProgressDisplay::new();
    let called = session::run(&options.connect, &options.server_command, async |client| {
        let mut tools = LazyToolList::default();
        let known = if arguments.names().next().is_some() { tools.find(client, &tool).await } else { None };
        let input_schema = known.map(|tool| &tool.input_schema);
        if let Some(input_schema) = input_schema {
            check_names(&tool, input_schema, &arguments)?;
        }
        let arguments = arguments.resolve(input_schema);
        let shown = bar.clone();
        let call = client.call_tool(&tool, &arguments).timeout(timeout);
        let call = call.on_progress(move |progress| shown.show(&progress));
        let called = options.server_log.show_during(client, call).await;
        bar.clear();
        match called {
            Ok(result) => {
                let hint = tools.hint_for_failed_tool(client, &tool, &arguments, &result).await;
                Ok((result, hint))
            }
            Err(error) if error.kind() == ErrorKind::Refused => {
                let wrong = error.refusal().is_some_and(|refusal| refusal.code == code::INVALID_PARAMS);
                let hint = match error.refusal().and_then(hints::missing_capability) {
                    Some(hint) => Some(hint),
                    None => tools.hint_for_error(client, &tool, &arguments, wrong).await,
                };
                Err(CliCommandFailure::from(error).with_note(hint))
            }
            Err(error) => Err(error.into()),
        }
    });
    let called = called.await;
    bar.clear();
    let (result, hint) = match called? {
        CliSessionEnd::Finished(called) => called,
        CliSessionEnd::Interrupted(interrupt) => return Ok(CliExitStatus::Interrupted(interrupt)),
    };
    if options.connect.json {
        content::print_json(&result)?;
    } else {
        for block in &result.content {
            content::print_line(&content::format_content(block))?;
        }
        if let (Some(structured), true) = (&result.structured_content, result.content.is_empty()) {
            content::print_json(structured)?;
        }
    }
    if let Some(hint) = hint {
        eprint_line(format_args!("steadfast: {hint}"));
    }
    Ok(if result.is_error == Some(true) { CliExitStatus::ToolFailed } else { CliExitStatus::Success })
}

/// Warns about arguments that the tool's schema does not list, since most servers ignore such arguments silently. If the tool's
/// schema rejects additional arguments, the tool is not called.
fn check_names(
    tool: &str,
    input_schema: &JsonObject,
    arguments: &ParsedToolArguments,
) -> Result<(), CliCommandFailure> {
    let unknown = hints::unknown_arguments(tool, input_schema, arguments.names());
    match schema::additional_arguments(input_schema) {
        AdditionalArguments::Allowed => Ok(()),
        _ if unknown.is_empty() => Ok(()),
        AdditionalArguments::Unspecified => {
            for line in unknown {
                eprint_line(format_args!("steadfast: warning: {line} (the argument is sent anyway)"));
            }
            Ok(())
        }
        AdditionalArguments::Rejected => {
            let given = arguments.names().map(|name| (name.to_owned(), serde_json::Value::Null)).collect();
            let hint = hints::describe_arguments(tool, input_schema, &given, false);
            let failure = CliCommandFailure::from(Error::usage(unknown.join("; "))).with_note(hint);
            Err(failure.with_note("the tool was not called; --arguments-json sends arguments unchecked".to_owned()))
        }
    }
}

/// The server's tools, which the command requests at most once.
#[derive(Default)]
struct LazyToolList {
    tools: Vec<Tool>,
    /// Whether the list of the server's tools was requested.
    requested: bool,
    /// Whether the list contains all tools of the server.
    complete: bool,
}

impl LazyToolList {
    /// Finds the server's tool with this name. The client stops listing the server's tools when the tool is found.
    async fn find(&mut self, client: &Client, name: &str) -> Option<&Tool> {
        if !self.requested {
            self.requested = true;
            let mut tools = client.tools().timeout(HINT_TIMEOUT);
            self.complete = loop {
                let tool = match tools.next().await {
                    Some(Ok(tool)) => tool,
                    Some(Err(_)) => break false,
                    None => break true,
                };
                let found = tool.name == name;
                self.tools.push(tool);
                if found {
                    break false;
                }
            };
        }
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// A hint for the JSON-RPC error of a tool call. `wrong` tells whether the error says that the arguments are invalid.
    async fn hint_for_error(
        &mut self,
        client: &Client,
        name: &str,
        arguments: &JsonObject,
        wrong: bool,
    ) -> Option<String> {
        if let Some(tool) = self.find(client, name).await {
            return hints::describe_arguments(name, &tool.input_schema, arguments, wrong);
        }
        if !self.complete {
            return None;
        }
        let names: Vec<&str> = self.tools.iter().map(|tool| &*tool.name).collect();
        hints::suggest_names("tools", name, &names)
    }

    /// A hint for a result with `isError`: many tools report invalid arguments in this way, so that models see the error.
    async fn hint_for_failed_tool(
        &mut self,
        client: &Client,
        name: &str,
        arguments: &JsonObject,
        result: &CallToolResult,
    ) -> Option<String> {
        if result.is_error != Some(true) {
            return None;
        }
        let tool = self.find(client, name).await?;
        hints::describe_arguments(name, &tool.input_schema, arguments, false)
    }
}
