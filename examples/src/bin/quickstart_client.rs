//! A whole client. It starts `quickstart`, which has to be on the `PATH`, and stops it.

use steadfast::prelude::*;
use steadfast::serde_json::json;
use steadfast::transport::child::Command;

#[tokio::main]
async fn main() -> Result<(), steadfast::Error> {
    let client = Client::connect(Command::new("quickstart")).await?;
    match client.call_tool("add", json!({ "a": 2, "b": 3 })).await {
        Ok(answer) if answer.is_error() => println!("the tool failed: {:?}", answer.content),
        Ok(answer) => answer.content.iter().filter_map(Content::as_text).for_each(|text| println!("{text}")),
        // The error with its causes, and whether the server may have executed the call.
        Err(error) => println!("{error:?}; what is known of the call: {:?}", error.outcome()),
    }
    client.close().await;
    Ok(())
}
