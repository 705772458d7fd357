//! The server of the first page of the documentation.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use steadfast::{Context, IntoServer, Structured, server};

struct Weather {
    api: Api,
}

/// Weather for people who are outside.
#[server]
impl Weather {
    /// Forecast for a city.
    #[tool(read_only)]
    async fn forecast(
        &self,
        /// City name
        city: String,
        #[arg(default = 3)] days: u8,
        ctx: Context,
    ) -> steadfast::ToolResult<Structured<Forecast>> {
        let _ = ctx;
        Ok(Structured(self.api.forecast(&city, days).await?))
    }
}

struct Api;

impl Api {
    async fn forecast(&self, city: &str, days: u8) -> Result<Forecast, std::io::Error> {
        Ok(Forecast { sky: format!("{city}: sun for {days} days") })
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Forecast {
    sky: String,
}

fn main() {
    let server = Weather { api: Api }.into_server();
    assert!(server.tool("forecast").is_some());
}
