//! `steadfast call`: calls a tool, and says how it ended.

use clap::Args;
use steadfast::model::Tool;
use steadfast::{CallToolResult, Client, Error, ErrorKind, JsonObject, code};

use super::arguments::{Arguments, Typed};
use super::listening::Listening;
use super::progress::Progress;
use super::schema::{self, Others};
use super::session::Ended;
use super::{Connect, Ending, Failure, LISTING, Launch, advice, ending, session, show};
use crate::output::say;

/// Calls a tool
#[derive(Args)]
#[command(
    after_help = ending::help("steadfast call './steadfast serve' add --arg a=1 --arg b=2"),
    override_usage = "steadfast call [OPTIONS] <TARGET> <TOOL>\n       steadfast call [OPTIONS] <TOOL> -- <COMMAND>..."
)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) connect: Connect,
    /// The tool
    tool: Option<String>,
    #[command(flatten)]
    arguments: Arguments,
    #[command(flatten)]
    listening: Listening,
    #[command(flatten)]
    launch: Launch,
}

pub(crate) async fn run(mut options: Options) -> Result<Ending, Failure> {
    let typed = options.arguments.read()?;
    let tool = options.connect.sort(options.tool.take(), &options.launch, "the tool")?;
    let timeout = options.connect.timeout();
    let bar = Progress::new();
    let called = session::with(&options.connect, &options.launch, async |client| {
        let mut tools = Tools::default();
        let known = if typed.names().next().is_some() { tools.find(client, &tool).await } else { None };
        let input_schema = known.map(|tool| &tool.input_schema);
        if let Some(input_schema) = input_schema {
            check_names(&tool, input_schema, &typed)?;
        }
        let arguments = typed.settle(input_schema);
        let shown = bar.clone();
        let call = client.call_tool(&tool, &arguments).timeout(timeout);
        let call = call.on_progress(move |progress| shown.show(&progress));
        let called = options.listening.during(client, call).await;
        bar.clear();
        match called {
            Ok(result) => {
                let advice = tools.about_a_failure(client, &tool, &arguments, &result).await;
                Ok((result, advice))
            }
            Err(error) if error.kind() == ErrorKind::Refused => {
                let wrong = error.refusal().is_some_and(|refusal| refusal.code == code::INVALID_PARAMS);
                let advice = match error.refusal().and_then(advice::what_it_needs) {
                    Some(advice) => Some(advice),
                    None => tools.about_a_refusal(client, &tool, &arguments, wrong).await,
                };
                Err(Failure::from(error).with_note(advice))
            }
            Err(error) => Err(error.into()),
        }
    });
    let called = called.await;
    bar.clear();
    let (result, advice) = match called? {
        Ended::Done(called) => called,
        Ended::GivenUp(interrupt) => return Ok(Ending::Cancelled(interrupt)),
    };
    if options.connect.json {
        show::as_json(&result)?;
    } else {
        for piece in &result.content {
            show::print(&show::content(piece))?;
        }
        if let (Some(structured), true) = (&result.structured_content, result.content.is_empty()) {
            show::as_json(structured)?;
        }
    }
    if let Some(advice) = advice {
        say(format_args!("steadfast: {advice}"));
    }
    Ok(if result.is_error == Some(true) { Ending::ToolFailed } else { Ending::Done })
}

/// Warns of arguments that the tool does not have: one by a wrong name is as good as left out, and most servers do not say so.
/// Those that the schema refuses are not sent.
fn check_names(tool: &str, input_schema: &JsonObject, typed: &Typed) -> Result<(), Failure> {
    let unknown = advice::what_it_does_not_take(tool, input_schema, typed.names());
    match schema::others(input_schema) {
        Others::Taken => Ok(()),
        _ if unknown.is_empty() => Ok(()),
        Others::Unspoken => {
            for line in unknown {
                say(format_args!("steadfast: {line} (it is sent all the same)"));
            }
            Ok(())
        }
        Others::Refused => {
            let given = typed.names().map(|name| (name.to_owned(), serde_json::Value::Null)).collect();
            let takes = advice::what_it_takes(tool, input_schema, &given, false);
            let failure = Failure::from(Error::usage(unknown.join("; "))).with_note(takes);
            Err(failure.with_note("it was not called; --arguments-json sends whatever it holds".to_owned()))
        }
    }
}

/// The server's tools, as far as they were listed.
#[derive(Default)]
struct Tools {
    listed: Vec<Tool>,
    /// They were asked for, which is done once.
    asked: bool,
    /// There are no others.
    complete: bool,
}

impl Tools {
    /// The tool of that name. Those behind it are not asked for.
    async fn find(&mut self, client: &Client, name: &str) -> Option<&Tool> {
        if !self.asked {
            self.asked = true;
            let mut tools = client.tools().timeout(LISTING);
            self.complete = loop {
                let tool = match tools.next().await {
                    Some(Ok(tool)) => tool,
                    Some(Err(_)) => break false,
                    None => break true,
                };
                let found = tool.name == name;
                self.listed.push(tool);
                if found {
                    break false;
                }
            };
        }
        self.listed.iter().find(|tool| tool.name == name)
    }

    /// What may help whose call was refused: `wrong` if that was for its arguments.
    async fn about_a_refusal(
        &mut self,
        client: &Client,
        name: &str,
        arguments: &JsonObject,
        wrong: bool,
    ) -> Option<String> {
        if let Some(tool) = self.find(client, name).await {
            return advice::what_it_takes(name, &tool.input_schema, arguments, wrong);
        }
        if !self.complete {
            return None;
        }
        let names: Vec<&str> = self.listed.iter().map(|tool| &*tool.name).collect();
        advice::what_there_is("tools", name, &names)
    }

    /// What may help whose call failed: many tools answer that their arguments are wrong, for models to read.
    async fn about_a_failure(
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
        advice::what_it_takes(name, &tool.input_schema, arguments, false)
    }
}
