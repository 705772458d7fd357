//! Arguments and results of a tool: parameters of Rust types in, text or a structured value out.
//!
//! Shows the schema that clients get, a call, and the error that a model gets for a wrong argument.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use steadfast::prelude::*;

// A type of your own needs `Deserialize` and `JsonSchema`. Doc comments become descriptions for the model.
/// Unit of temperatures
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Celsius,
    Fahrenheit,
}

// A structured result needs `Serialize` and `JsonSchema`.
#[derive(Serialize, JsonSchema)]
struct Forecast {
    /// The city that was asked for
    city: String,
    /// The highest temperature of each day
    highest: Vec<f64>,
}

struct Weather;

/// Weather for people who are outside.
#[server(name = "weather")]
impl Weather {
    /// Forecast for a city.
    #[tool(read_only, title = "Forecast")]
    async fn forecast(
        &self,
        /// City name
        city: String,
        /// How many days, seven at most
        #[arg(default = 3)]
        days: u8,
        unit: Option<Unit>,
    ) -> steadfast::ToolResult<Structured<Forecast>> {
        if days > 7 {
            // The model gets this message, and can call again with fewer days.
            return Err(ToolError::new(format!("there is no forecast for {days} days: the limit is 7")));
        }
        let highest = (0..days).map(|day| 20.0 + 5.0 * f64::from(day));
        let highest = match unit.unwrap_or(Unit::Celsius) {
            Unit::Celsius => highest.collect(),
            Unit::Fahrenheit => highest.map(|celsius| celsius * 1.8 + 32.0).collect(),
        };
        Ok(Structured(Forecast { city, highest }))
    }

    /// Notes about a place. A plain `fn` may block: it runs on a separate thread.
    #[tool(read_only)]
    fn notes(&self, place: String) -> std::io::Result<String> {
        // Any error type works: the model gets its message.
        std::fs::read_to_string(format!("notes/{place}.txt"))
    }
}

#[tokio::main]
async fn main() -> Result<(), steadfast::Error> {
    let client = Client::connect(Weather).await?;
    for tool in client.list_tools().await? {
        println!("{} takes {}", tool.name, json!(tool.input_schema));
    }
    for arguments in [
        json!({ "city": "Oslo", "unit": "fahrenheit" }),
        json!({ "city": "Oslo", "days": 30 }),
        json!({ "city": "Oslo", "days": "three" }),
        json!({ "days": 3 }),
    ] {
        let result = client.call_tool("forecast", &arguments).await?;
        let text = result.content.first().and_then(Content::as_text).unwrap_or_default();
        println!("{arguments}\n  {}: {text}", if result.is_error() { "failed" } else { "done" });
    }
    client.close().await;
    Ok(())
}
