use steadfast::{server, tool};

struct Forecast;

#[tool]
async fn forecast() -> Forecast {
    Forecast
}

struct Weather;

#[server]
impl Weather {
    #[tool]
    fn now(&self) -> Result<Forecast, std::io::Error> {
        Ok(Forecast)
    }
}

fn main() {}
