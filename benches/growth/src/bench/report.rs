//! What a run says: a table for each dimension, and JSON.

use crate::dimension::Dimension;
use crate::servers::Server;
use bench_kit::figures::{grouped, significant};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// The figures of one dimension.
pub(crate) struct Curve {
    pub(crate) dimension: Dimension,
    pub(crate) points: Vec<Point>,
}

/// The figures at one n.
pub(crate) struct Point {
    pub(crate) n: usize,
    /// By the name of the server. A server that failed here or at a smaller n is not in it.
    pub(crate) costs: Vec<(&'static str, f64)>,
}

impl Point {
    fn cost(&self, server: &Server) -> Option<f64> {
        self.costs.iter().find(|(name, _)| *name == server.name()).map(|(_, cost)| *cost)
    }
}

/// A row for each n, a column for each server.
pub(crate) fn table(curve: &Curve, servers: &[Server]) -> String {
    let dimension = curve.dimension;
    let mut text = format!("\n{}: {} per {}\n", dimension.name(), dimension.unit(), dimension.per());
    let _ = write!(text, "{:>12}", "n");
    for server in servers {
        let _ = write!(text, "{:>15}", server.name());
    }
    text.push('\n');
    for point in &curve.points {
        let _ = write!(text, "{:>12}", grouped_count(point.n));
        for server in servers {
            let shown = match point.cost(server) {
                Some(cost) if cost >= 1e4 => grouped(cost),
                Some(cost) => significant(cost),
                None => "-".to_owned(),
            };
            let _ = write!(text, "{shown:>15}");
        }
        text.push('\n');
    }
    text
}

/// Every figure of a run.
pub(crate) fn json(curves: &[Curve], smoke: bool) -> Value {
    let dimensions = curves.iter().map(|curve| {
        let points = curve.points.iter().map(|point| {
            let costs = point.costs.iter().map(|(name, cost)| ((*name).to_owned(), json!(cost)));
            json!({"n": point.n, "servers": costs.collect::<Map<String, Value>>()})
        });
        json!({
            "name": curve.dimension.name(),
            "unit": curve.dimension.unit(),
            "per": curve.dimension.per(),
            "points": points.collect::<Vec<Value>>(),
        })
    });
    json!({"smoke": smoke, "dimensions": dimensions.collect::<Vec<Value>>()})
}

/// A count with its thousands apart.
pub(crate) fn grouped_count(count: usize) -> String {
    if count < 10 { count.to_string() } else { grouped(count as f64) }
}

#[cfg(test)]
mod tests {
    use super::{Curve, Point, json};
    use crate::dimension::Dimension;

    #[test]
    fn a_server_without_a_figure_is_not_in_the_json_of_its_point() {
        let points = vec![
            Point { n: 1, costs: vec![("steadfast", 1.5), ("rmcp", 2.5)] },
            Point { n: 10, costs: vec![("steadfast", 1.75)] },
        ];
        let report = json(&[Curve { dimension: Dimension::Tools, points }], false);
        let points = &report["dimensions"][0]["points"];
        assert_eq!(points[0]["servers"], serde_json::json!({"steadfast": 1.5, "rmcp": 2.5}));
        assert_eq!(points[1], serde_json::json!({"n": 10, "servers": {"steadfast": 1.75}}));
    }
}
