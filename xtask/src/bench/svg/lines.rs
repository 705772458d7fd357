//! Lines over two logarithmic axes, with a legend.

use super::super::numbers;
use super::scale::Scale;
use super::{Anchor, Canvas, DARK, MUTED, WIDTH, colour};

const HEIGHT: f64 = 420.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = WIDTH - 150.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = HEIGHT - 56.0;

/// Lines with common axes.
#[derive(Debug)]
pub(crate) struct LinePlot {
    pub(crate) title: String,
    pub(crate) x_axis: String,
    pub(crate) y_axis: String,
    pub(crate) lines: Vec<Line>,
}

/// One line. Points that are not positive in both coordinates are left out.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

impl LinePlot {
    /// The plot as SVG.
    pub(crate) fn svg(&self) -> String {
        let horizontal = scale(self.points().map(|(x, _)| x), 1.0);
        // Room above and below, so that a level line is not drawn along the edge.
        let vertical = scale(self.points().map(|(_, y)| y), 1.5);
        let across = |value: f64| LEFT + (RIGHT - LEFT) * horizontal.position(value);
        let up = |value: f64| BOTTOM - (BOTTOM - TOP) * vertical.position(value);
        let mut canvas = Canvas::new(&self.title);
        for tick in horizontal.ticks() {
            canvas.line((across(tick), TOP), (across(tick), BOTTOM));
            canvas.text(across(tick), BOTTOM + 18.0, Anchor::Middle, MUTED, &numbers::tick(tick));
        }
        for tick in vertical.ticks() {
            canvas.line((LEFT, up(tick)), (RIGHT, up(tick)));
            canvas.text(LEFT - 8.0, up(tick) + 4.0, Anchor::End, MUTED, &numbers::tick(tick));
        }
        canvas.text(f64::midpoint(LEFT, RIGHT), BOTTOM + 42.0, Anchor::Middle, MUTED, &self.x_axis);
        canvas.upright_text(20.0, f64::midpoint(TOP, BOTTOM), &self.y_axis);
        let mut legend = TOP + 8.0;
        for line in &self.lines {
            let points: Vec<(f64, f64)> = line.drawable().map(|(x, y)| (across(x), up(y))).collect();
            canvas.path(&points, colour(&line.name));
            canvas.bar((RIGHT + 16.0, legend - 9.0), (12.0, 10.0), colour(&line.name));
            canvas.text(RIGHT + 34.0, legend, Anchor::Start, DARK, &line.name);
            legend += 20.0;
        }
        canvas.finish(HEIGHT)
    }

    fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        self.lines.iter().flat_map(Line::drawable)
    }
}

impl Line {
    fn drawable(&self) -> impl Iterator<Item = (f64, f64)> {
        let is_positive = |value: f64| value.is_finite() && value > 0.0;
        self.points.iter().copied().filter(move |(x, y)| is_positive(*x) && is_positive(*y))
    }
}

/// An axis for these values, which begins and ends this many times beside them.
fn scale(values: impl Iterator<Item = f64>, margin: f64) -> Scale {
    let range = values.fold((f64::INFINITY, 0.0_f64), |(least, most), value| (least.min(value), most.max(value)));
    Scale::logarithmic(range.0 / margin, range.1 * margin)
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_well_formed;
    use super::*;

    fn plot(points: &[(f64, f64)]) -> String {
        let line = |name: &str| Line { name: name.to_owned(), points: points.to_vec() };
        let lines = vec![line("steadfast"), line("rmcp")];
        let (x_axis, y_axis) = ("requests in flight".to_owned(), "CPU microseconds per request".to_owned());
        LinePlot { title: "Requests in flight".to_owned(), x_axis, y_axis, lines }.svg()
    }

    #[test]
    fn every_label_is_in_the_plot() {
        let svg = plot(&[(1.0, 12.3), (10.0, 11.0), (100.0, 13.0)]);
        assert_well_formed(&svg);
        for text in ["Requests in flight", "requests in flight", "CPU microseconds per request", "steadfast", "rmcp"] {
            assert!(svg.contains(text), "{text}");
        }
        assert_eq!(svg.matches("<circle").count(), 6);
    }

    #[test]
    fn points_that_no_logarithm_has_are_left_out() {
        let svg = plot(&[(0.0, 1.0), (1.0, 0.0), (10.0, f64::NAN), (10.0, 5.0)]);
        assert_well_formed(&svg);
        assert_eq!(svg.matches("<circle").count(), 2);
        assert_well_formed(&plot(&[]));
    }
}
